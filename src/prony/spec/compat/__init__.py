"""The reference's dialect: its command lines, its JSON rows, its order and its quirks; nothing else knows of them."""
