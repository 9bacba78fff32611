"""Makes the files that `benchmarks.gpu.bulk` takes to a machine without the project's packages.

    python -m benchmarks.gpu.prepare FOLDER [TEXTS.json]

`weights.npz` in half precision, `tokenizer.json`, and of the texts of a JSON list `sample.json`
with their float32 vectors in `sample.npy`.
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from readingroom.engine.embedding.embedder import MAX_TEXT_CHARS, Embedder
from readingroom.engine.embedding.weights import get_weights_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("texts", type=Path, nargs="?")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    source = get_weights_folder(options.folder / "models").folder
    arrays = load_file(source / "model.safetensors")
    halves = {
        name: array.astype(np.float16) for name, array in arrays.items() if array.dtype.kind == "f"
    }
    config = (source / "config.json").read_text("utf-8")
    np.savez(options.folder / "weights.npz", config=np.array(config), **halves)
    shutil.copyfile(source / "tokenizer.json", options.folder / "tokenizer.json")
    if options.texts:
        _write_sample(options.folder, json.loads(options.texts.read_text("utf-8")))


def _write_sample(folder: Path, texts: list[str]) -> None:
    cut_texts = [text[:MAX_TEXT_CHARS] for text in texts]
    vectors = Embedder(folder / "models").embed_batch(cut_texts)
    (folder / "sample.json").write_text(json.dumps(cut_texts), "utf-8")
    np.save(folder / "sample.npy", vectors)


if __name__ == "__main__":
    main()
