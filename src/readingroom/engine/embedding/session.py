"""Opens the files of a model: its ONNX graph, to be run on the processor, and its tokenizer."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime
    from tokenizers import Tokenizer


def open_session(
    graph_path: Path, thread_count: int, keeps_memory: bool = False
) -> "onnxruntime.InferenceSession":
    """Return a session of onnxruntime that takes no more memory and cores than it needs.

    One that `keeps_memory` has that of its largest run ever after, and is a little faster.
    """
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # what is run here is nobody else's business
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = thread_count
    session_options.log_severity_level = 3
    session_options.enable_cpu_mem_arena = keeps_memory
    # Waiting threads would spin on a core that others need.
    session_options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        graph_path, session_options, providers=["CPUExecutionProvider"]
    )


def load_tokenizer(tokenizer_file: Path, max_tokens: int | None = None) -> "Tokenizer":
    """Return a tokenizer that pads nothing, and cuts texts at `max_tokens` if that is given."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    # A model's file may ask for padding, with which a short text takes as long as the longest.
    tokenizer.no_padding()
    if max_tokens is not None:
        tokenizer.enable_truncation(max_tokens)
    return tokenizer
