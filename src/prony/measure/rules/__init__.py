"""The rules that judge a load, by theme: its answers, its flow, its client, its machine."""
