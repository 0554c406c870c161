"""Coverage-guided fuzzing of the targets with atheris: `python tests/fuzz/guided.py TARGET [--seconds 60] [--corpus DIR]`.

A finding is printed with the bytes that made it, and becomes an example of a test in this folder. What is passed on to
libFuzzer stands behind `--`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "src")]
with atheris.instrument_imports(include=["kernelwright", "json", "tomllib", "csv"]):
    from seeds import SEEDS
    from targets import TARGETS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="a folder that keeps what was found interesting")
    parser.add_argument("more", nargs="*")
    given = parser.parse_args()
    folder = given.corpus or Path(f"out/fuzz/{given.target}")
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[given.target]):
        (folder / f"seed-{number}").write_bytes(seed)
    options = [
        f"-max_total_time={given.seconds}",
        "-timeout=20",
        "-max_len=4096",
        "-len_control=0",
        "-print_final_stats=1",
        "-rss_limit_mb=4096",
    ]
    atheris.Setup(
        [sys.argv[0], *options, f"-artifact_prefix={folder}/", *given.more, str(folder)], TARGETS[given.target]
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
