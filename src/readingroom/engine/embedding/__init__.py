"""The embedding model: its weights, its ONNX graph, and text to vectors."""
