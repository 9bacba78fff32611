"""Trains low-rank changes of the cross-encoder on some corpora and tries them on others.

Five steps, each of which leaves its files in the folder WORK for the next:

    python -m benchmarks.adapter collect WORK plans --data FOLDER
    python -m benchmarks.adapter read WORK plans guidance sample
    python -m benchmarks.adapter train WORK plans guidance --adapter first
    python -m benchmarks.adapter score WORK sample --adapter first
    python -m benchmarks.adapter compare WORK sample --adapter first

`collect` asks the tuning questions of a corpus and keeps what the engine finds, in its first order:
plans (brought into FOLDER from the shared data), guidance (GOV.UK, likewise), federal (FOLDER is a
data directory with the records loaded and embedded) and sample (one with the sample in it). `read`
runs the int8 graph over the first candidates; its log-odds and the states after the layers that
stay as they are (--kept) are what training needs. `train` and `score` need torch, which is in no
lock: install torch and numpy in an environment of your own and run these two with its Python.
`score` leaves out the questions about documents that the adapter was trained on; without --adapter
it scores with the same layers as floats, unchanged, which tells rounding from learning. `compare`
prints the figures and paired tests of `docs/engine.md`, "The second look".

Of a processor `read` takes some 0.02 s a candidate and `train` some 8 s a step of eight questions.
"""

import argparse
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np

_UNCHANGED = "unchanged"


def collect(options: argparse.Namespace) -> None:
    """Ask the questions of each corpus, and keep what is found."""
    # Each step imports its own: torch and the project's packages may be in two environments.
    import anyio

    from benchmarks.adapter.candidates import COLLECTORS

    for name in options.corpora:
        asked = anyio.run(COLLECTORS[name], options.data, options.questions)
        (options.work / f"{name}.json").write_text(json.dumps(list(map(asdict, asked))), "utf-8")
        print(f"{name}: {len(asked)} questions")


def read(options: argparse.Namespace) -> None:
    """Run the graph over the candidates of each corpus."""
    from benchmarks.adapter.states import read_candidates, write_weights
    from readingroom.engine.embedding.reranker import find_packaged_reranker

    model_folder = options.model or find_packaged_reranker()
    if model_folder is None:
        raise SystemExit("The cross-encoder is not here; name its folder with --model.")
    write_weights(model_folder, options.work / "weights.npz")
    for name in options.corpora:
        asked = json.loads((options.work / f"{name}.json").read_text("utf-8"))
        rows, states = read_candidates(
            model_folder, asked, options.depth, options.kept, options.headings
        )
        np.save(options.work / f"{name}.rows.npy", rows)
        np.save(options.work / f"{name}.after{options.kept}.npy", states)
        print(f"{name}: {len(rows)} candidates")


def train(options: argparse.Namespace) -> None:
    """Train an adapter on the questions of all corpora together."""
    from benchmarks.adapter import network

    recipe = network.Recipe(options.rank, options.learning_rate, options.epochs, seed=options.seed)
    corpora = [network.Corpus(options.work, name, options.kept) for name in options.corpora]
    groups = [
        group
        for corpus in corpora
        for group in corpus.list_groups(recipe.wrong_count, options.documents)
    ]
    adapter = network.train(options.work, options.kept, groups, recipe, options.device)
    network.save(options.work / f"{options.adapter}.pt", adapter)


def score(options: argparse.Namespace) -> None:
    """Compute the log-odds of the candidates of each corpus."""
    from benchmarks.adapter import network

    path = options.work / f"{options.adapter}.pt" if options.adapter != _UNCHANGED else None
    for name in options.corpora:
        corpus = network.Corpus(options.work, name, options.kept)
        values = network.score(options.work, corpus, options.kept, path, options.device)
        np.save(options.work / f"{options.adapter}.{name}.npy", values)
        print(f"{name}: {np.isfinite(values).sum()} of {len(values)} candidates")


def compare(options: argparse.Namespace) -> None:
    """Print the figures of each corpus."""
    from benchmarks.adapter.comparison import Readings, compare_readings

    for name in options.corpora:
        asked = json.loads((options.work / f"{name}.json").read_text("utf-8"))
        rows = np.load(options.work / f"{name}.rows.npy")
        after = np.load(options.work / f"{options.adapter}.{name}.npy")
        before = np.where(np.isnan(after), np.nan, rows[:, 3])
        join = partial(Readings.join, name, asked, rows)
        print(name, *compare_readings(join(before), join(after)), sep="\n")


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(required=True)
    parsers = {}
    for run_step in (collect, read, train, score, compare):
        name = run_step.__name__
        parsers[name] = steps.add_parser(name, help=run_step.__doc__)
        parsers[name].set_defaults(run_step=run_step)
        parsers[name].add_argument("work", type=Path, help="folder of the files")
        parsers[name].add_argument("corpora", nargs="+", help="plans, guidance, federal, sample")
    parsers["collect"].add_argument("--data", type=Path, required=True)
    parsers["collect"].add_argument("--questions", type=int, help="of each kind at most [all]")
    parsers["read"].add_argument("--model", type=Path, help="folder [the package's]")
    parsers["read"].add_argument("--depth", type=int, default=8, help="candidates [8]")
    parsers["read"].add_argument("--headings", action="store_true", help="before the texts")
    for name in ("read", "train", "score"):
        parsers[name].add_argument("--kept", type=int, default=6, help="lower layers [6]")
    for name in ("train", "score", "compare"):
        parsers[name].add_argument("--adapter", default=_UNCHANGED, required=name == "train")
    for name in ("train", "score"):
        parsers[name].add_argument("--device", default="cpu")
    parsers["train"].add_argument("--documents", nargs="*", default=(), help="words of their names")
    parsers["train"].add_argument("--rank", type=int, default=8)
    parsers["train"].add_argument("--learning-rate", type=float, default=1e-3)
    parsers["train"].add_argument("--epochs", type=float, default=1.0)
    parsers["train"].add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    options.run_step(options)
