"""Trains low-rank changes of the cross-encoder, and compares them with it as the package has it.

Each step leaves its files in the folder WORK for the next:

    python -m benchmarks.adapter collect WORK plans --data FOLDER
    python -m benchmarks.adapter read WORK plans guidance federal sample
    python -m benchmarks.adapter grade WORK plans guidance federal sample
    python -m benchmarks.adapter train WORK plans guidance federal sample --adapter first
    python -m benchmarks.adapter grade WORK plans guidance federal sample --adapter first
    python -m benchmarks.adapter compare WORK plans guidance federal sample --adapter first
    python -m benchmarks.adapter fit WORK plans guidance federal sample --adapter first
    python -m benchmarks.adapter export WORK --adapter first

`collect` asks the tuning questions of a corpus and keeps what the engine finds, in its first order:
plans (brought into FOLDER from the shared data), guidance (GOV.UK, likewise), federal (FOLDER is a
data directory with the records loaded and embedded) and sample (one with the sample in it). `read`
makes the pairs of questions and texts, and the weights that training starts from. `train` leaves
out the questions that are held out, one in six by their own words; with --left-out-fold also those
about a fifth of the documents, for what must not have seen a document: train five, named first.0 to
first.4, and `score --folds` judges each question by the adapter that has seen nothing about its
document. `grade` runs the int8 graph that searches run, with the adapter or as packaged; `compare`
prints where right passages come and paired tests, and --held-out asks only those; `fit` prints what
searches should make of the log-odds, by the held-out questions; `export` puts the adapter into the
package, and prints its digest for `reranker.py`.

`train` and `score` need torch, which is in no lock, and a C++ compiler: install torch and numpy in
an environment of your own and run these two with its Python, on processors of your own. On two
busy cores training takes some twenty minutes, grading four.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGED = "packaged"


def collect(options: argparse.Namespace) -> None:
    """Ask the questions of each corpus, and keep what is found."""
    # Each step imports its own: torch and the project's packages may be in two environments.
    from dataclasses import asdict

    import anyio

    from benchmarks.adapter.candidates import COLLECTORS

    for name in options.corpora:
        asked = anyio.run(COLLECTORS[name], options.data, options.questions)
        (options.work / f"{name}.json").write_text(json.dumps(list(map(asdict, asked))), "utf-8")
        print(f"{name}: {len(asked)} questions")


def read(options: argparse.Namespace) -> None:
    """Make the pairs of each corpus, and the weights."""
    from benchmarks.adapter.pairs import make_pairs, write_weights

    model_folder = _find_model()
    write_weights(model_folder / "model.onnx", options.work / "weights.npz")
    for name in options.corpora:
        pairs = make_pairs(model_folder, _read_asked(options.work, name), options.depth)
        np.savez_compressed(options.work / f"{name}.pairs.npz", **pairs)
        print(f"{name}: {len(pairs['length'])} pairs")


def train(options: argparse.Namespace) -> None:
    """Train an adapter on the questions of all corpora together."""
    from benchmarks.adapter import network

    values = {name: getattr(options, name) for name in ("kept", "rank", "epochs", "seed")}
    recipe = network.Recipe(learning_rate=options.learning_rate, **values)
    corpora = [network.Corpus(options.work, name) for name in options.corpora]
    groups = [
        forms
        for corpus in corpora
        for forms in corpus.list_groups(
            corpus.list_questions(options.left_out_fold), recipe.wrong_count
        )
    ]
    weights = network.load_weights(options.work)
    trained = network.train(weights, groups, recipe)
    network.save_changes(trained, options.work / f"{options.adapter}.npz")


def score(options: argparse.Namespace) -> None:
    """Compute the log-odds of all pairs by the network in torch."""
    from benchmarks.adapter import network

    weights = network.load_weights(options.work)
    corpora = {name: network.Corpus(options.work, name) for name in options.corpora}
    folds = range(5) if options.folds else [None]
    values = {name: np.full(len(corpus.starts) - 1, np.nan) for name, corpus in corpora.items()}
    for fold in folds:
        adapter = options.adapter if fold is None else f"{options.adapter}.{fold}"
        path = None if adapter == _PACKAGED else options.work / f"{adapter}.npz"
        changed = network.load_changed(weights, path)
        for name, corpus in corpora.items():
            of_row = corpus.columns["fold"][corpus.columns["question"]]
            rows = np.flatnonzero((of_row == fold) | (fold is None))
            pairs = [(corpus, int(row)) for row in rows]
            values[name][rows] = network.score_all(changed, pairs)
    for name in corpora:
        suffix = ".folds" if options.folds else ".torch"
        np.save(options.work / f"{options.adapter}{suffix}.{name}.npy", values[name])


def grade(options: argparse.Namespace) -> None:
    """Compute the log-odds of the pairs that searches read, by the graph that they run."""
    from benchmarks.adapter.grading import grade_pairs
    from benchmarks.adapter.pairs import find_read_rows
    from readingroom.engine.embedding.cross_encoder.graph import build_cross_encoder

    graph_path = _find_model() / "model.onnx"
    if options.adapter != _PACKAGED:
        changes = _multiply(_read_changes(options))
        graph = build_cross_encoder(graph_path, changes)
        graph_path = options.work / f"{options.adapter}.onnx"
        graph_path.write_bytes(graph)
    for name in options.corpora:
        pairs = np.load(options.work / f"{name}.pairs.npz")
        columns = {column: pairs[column] for column in pairs.files}
        log_odds = grade_pairs(graph_path, columns, find_read_rows(columns, name))
        np.save(options.work / f"{options.adapter}.{name}.npy", log_odds)
        print(f"{name}: {np.isfinite(log_odds).sum()} pairs")


def compare(options: argparse.Namespace) -> None:
    """Print the figures of each corpus."""
    from benchmarks.adapter.comparison import (
        Readings,
        compare_places,
        compare_readings,
        list_places,
    )
    from benchmarks.adapter.pairs import find_read_rows

    places = []
    for name in options.corpora:
        asked = _read_asked(options.work, name)
        pairs = np.load(options.work / f"{name}.pairs.npz")
        rows = find_read_rows(pairs, name)
        before, after = (
            Readings.join(name, asked, pairs, rows, np.load(options.work / f"{model}.{name}.npy"))
            for model in (_PACKAGED, options.adapter)
        )
        wanted = pairs["is_held_out"] if options.held_out else ~pairs["is_held_out"]
        print(name, *compare_readings(before, after, wanted), sep="\n")
        places.append(list_places(before, after, wanted))
    before_all, after_all = map(np.concatenate, zip(*places, strict=True))
    print("all", *compare_places(before_all, after_all), sep="\n")


def fit(options: argparse.Namespace) -> None:
    """Print what the product should make of the log-odds, fitted on held-out questions."""
    from benchmarks.adapter.comparison import Readings
    from benchmarks.adapter.pairs import find_read_rows
    from benchmarks.adapter.scores import fit_scores

    corpora = {}
    for name in options.corpora:
        pairs = np.load(options.work / f"{name}.pairs.npz")
        values = np.load(options.work / f"{options.adapter}.{name}.npy")
        rows = find_read_rows(pairs, name)
        readings = Readings.join(name, _read_asked(options.work, name), pairs, rows, values)
        corpora[name] = readings, pairs["is_held_out"]
    print(*fit_scores(corpora), sep="\n")


def export(options: argparse.Namespace) -> None:
    """Put an adapter into the package."""
    from safetensors.numpy import save_file

    from readingroom.engine.embedding.cross_encoder.adapter import ADAPTER_FILE
    from readingroom.storage.files import hash_file

    save_file(_read_changes(options), ADAPTER_FILE)
    print(f"{ADAPTER_FILE}: {ADAPTER_FILE.stat().st_size:,} bytes, {hash_file(ADAPTER_FILE)}")


def _find_model() -> Path:
    from readingroom.engine.embedding.cross_encoder.reranker import find_packaged_reranker

    if model_folder := find_packaged_reranker():
        return model_folder
    raise SystemExit("The packaged cross-encoder is not here.")


def _read_asked(work: Path, name: str) -> Any:
    return json.loads((work / f"{name}.json").read_text("utf-8"))


def _read_changes(options: argparse.Namespace) -> dict[str, Any]:
    with np.load(options.work / f"{options.adapter}.npz") as changes:
        return {name: changes[name] for name in changes.files}


def _multiply(changes: dict[str, Any]) -> dict[str, Any]:
    floats = {name: matrix.astype(np.float32) for name, matrix in changes.items()}
    layers = [name.removesuffix(".up") for name in floats if name.endswith(".up")]
    return {layer: floats[f"{layer}.up"] @ floats[f"{layer}.down"] for layer in layers}


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    steps = parser.add_subparsers(required=True)
    parsers = {}
    for run_step in (collect, read, train, score, grade, compare, fit, export):
        name = run_step.__name__
        parsers[name] = steps.add_parser(name, help=run_step.__doc__)
        parsers[name].set_defaults(run_step=run_step)
        parsers[name].add_argument("work", type=Path, help="folder of the files")
        parsers[name].add_argument("corpora", nargs="*", help="plans, guidance, federal, sample")
    parsers["collect"].add_argument("--data", type=Path, required=True)
    parsers["collect"].add_argument("--questions", type=int, help="of each kind at most [all]")
    parsers["read"].add_argument("--depth", type=int, default=8, help="candidates [8]")
    for name in ("train", "score", "grade", "compare", "fit", "export"):
        is_required = name in ("train", "compare", "fit", "export")
        parsers[name].add_argument("--adapter", default=_PACKAGED, required=is_required)
    parsers["score"].add_argument("--folds", action="store_true", help="by five adapters")
    parsers["compare"].add_argument("--held-out", action="store_true")
    parsers["train"].add_argument("--left-out-fold", type=int, choices=range(5))
    parsers["train"].add_argument("--kept", type=int, default=6, help="lower layers [6]")
    parsers["train"].add_argument("--rank", type=int, default=8)
    parsers["train"].add_argument("--learning-rate", type=float, default=1e-3)
    parsers["train"].add_argument("--epochs", type=float, default=2.0)
    parsers["train"].add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    options = _parse_options()
    options.work.mkdir(parents=True, exist_ok=True)
    options.run_step(options)
