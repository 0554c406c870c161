"""A pool's configuration: one that works of each kind, and one message for each mistake."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

import pytest

from kernelwright.errors import UsageError
from kernelwright.pool.cluster import ClusterPool
from kernelwright.pool.config import EXAMPLES, Kind, PoolConfig, load_config, parse_config
from kernelwright.sandbox.backends import BACKENDS

HERE = Path("/somewhere/pool.toml")


def mistake(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_config(text, HERE)
    return caught.value


def changed(key: str, value: str) -> str:
    return f'kind = "slurm"\nfolder = "pool"\n{key} = {value}\n'


@pytest.mark.parametrize("kind", get_args(Kind))
def test_there_is_an_example_of_each_kind(kind: str) -> None:
    config = parse_config(EXAMPLES[kind], HERE)
    assert (config.kind, config.folder.is_absolute()) == (kind, True)


def test_a_worker_has_an_accelerator_or_the_cores() -> None:
    assert parse_config(changed("accelerators", "2"), HERE).lanes == ("0", "1")
    assert parse_config(changed("workers_per_accelerator", "2"), HERE).lanes == (None, None)
    both = parse_config(changed("accelerators", '["3", 1]') + "workers_per_accelerator = 2", HERE)
    assert both.lanes == ("3", "3", "1", "1")


def test_each_sandbox_that_needs_no_image_may_be_chosen() -> None:
    assert set(get_args(PoolConfig.model_fields["sandbox"].annotation)) == {"auto", *BACKENDS}


def test_a_folder_is_relative_to_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(EXAMPLES["local"])
    assert load_config(file).folder == tmp_path / "pool"


def test_a_walltime_is_read() -> None:
    assert parse_config(changed("walltime", '"04:30:05"'), HERE).walltime_s == 4 * 3600 + 30 * 60 + 5


@pytest.mark.parametrize(
    ("text", "what", "expected"),
    [
        ("kind = ", "is not TOML", "TOML"),
        ('folder = "pool"', "the key 'kind' is missing", "it to be given"),
        ('kind = "slurm"', "the key 'folder' is missing", "it to be given"),
        ('kind = "sge"\nfolder = "pool"', "kind = 'sge' does not fit", "slurm"),
        (changed("tries", "0"), "tries = 0 does not fit", "greater than or equal to 1"),
        (changed("walltime", '"90 minutes"'), "walltime = '90 minutes' does not fit", "hours:minutes:seconds"),
        (changed("accelerators", '"all"'), "accelerators = 'all' does not fit", "how many a node has"),
        (changed("sandbox", '"chroot"'), "sandbox = 'chroot' does not fit", "bubblewrap"),
        (changed("init_blocks", "3"), "does not fit", "min_blocks <= init_blocks <= max_blocks"),
        (changed("scheduler", '{ walltime = "01:00:00" }'), "does not fit", "walltime beside [scheduler]"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message(text: str, what: str, expected: str) -> None:
    error = mistake(text)
    assert what in error.what
    assert expected in error.expected
    assert "\n" not in str(error)


def test_a_misspelt_key_is_named_with_those_near() -> None:
    error = mistake(changed("acelerators", "4"))
    assert error.what.endswith("unknown key 'acelerators'")
    assert "accelerators" in error.try_


def test_a_file_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no configuration file"):
        load_config(tmp_path / "pool.toml")


def test_without_parsl_a_pool_on_a_cluster_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "parsl", None)
    with pytest.raises(UsageError) as caught:
        ClusterPool(parse_config(EXAMPLES["local"], tmp_path / "pool.toml"))
    assert caught.value.try_ == "pip install 'kernelwright[cluster]'"
