"""Tables and numbered migrations. Append-only: a changed result gets a new version."""

from collections.abc import Callable

import sqlalchemy as sa

from prony.base.errors import LaunchError

metadata = sa.MetaData()

schema_version = sa.Table(
    "schema_version",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("applied_at", sa.String(20), nullable=False),
)

receipts = sa.Table(
    "receipts",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("at", sa.String(20), nullable=False),
    sa.Column("added", sa.Integer, nullable=False),
    sa.Column("changed", sa.Integer, nullable=False),
    sa.Column("unchanged", sa.Integer, nullable=False),
    sa.Column("findings", sa.Integer, nullable=False),
)

# The columns that queries select by; everything else of a row is in its JSON.
results = sa.Table(
    "results",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.String(64), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("latest", sa.Boolean, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("receipt_id", sa.ForeignKey("receipts.id"), nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("model_prefix", sa.Text, nullable=False),
    sa.Column("hardware", sa.Text, nullable=False),
    sa.Column("framework", sa.Text, nullable=False),
    sa.Column("precision", sa.Text, nullable=False),
    sa.Column("spec_decoding", sa.Text, nullable=False),
    sa.Column("isl", sa.Integer),
    sa.Column("osl", sa.Integer),
    sa.Column("concurrency", sa.Integer, nullable=False),
    sa.Column("measured_at", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("simulated", sa.Boolean, nullable=False),
    sa.Column("valid", sa.Boolean, nullable=False),
    sa.Column("row", sa.Text, nullable=False),
    sa.UniqueConstraint("key", "version"),
    sa.Index("results_latest_model", "latest", "model_prefix", "isl", "osl"),
)

findings = sa.Table(
    "findings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String(64), nullable=False, unique=True),
    sa.Column("receipt_id", sa.ForeignKey("receipts.id"), nullable=False),
    sa.Column("rule", sa.Text, nullable=False),
    sa.Column("severity", sa.Text, nullable=False),
    sa.Column("finding", sa.Text, nullable=False),
)


def _first_tables(connection: sa.Connection) -> None:
    metadata.create_all(connection)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_first_tables,)


def current_version(connection: sa.Connection) -> int:
    """Return the schema version of a database, 0 when it is empty. Raises LaunchError for one that is not a store."""
    names = sa.inspect(connection).get_table_names()
    if schema_version.name in names:
        return connection.execute(sa.select(sa.func.max(schema_version.c.version))).scalar_one() or 0
    if names:
        raise LaunchError(
            f"a database of something else (tables: {', '.join(sorted(names)[:5])})",
            fix="name another file with --store",
        )
    return 0


def migrate(connection: sa.Connection, at: str) -> None:
    """Bring a database up to the newest schema inside the caller's transaction. `at`: ISO time to note."""
    for version in range(current_version(connection) + 1, len(MIGRATIONS) + 1):
        MIGRATIONS[version - 1](connection)
        connection.execute(sa.insert(schema_version).values(version=version, applied_at=at))
