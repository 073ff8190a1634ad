"""Released checkpoints on the classes of transformers: files, tokenizer, tensors, network."""
