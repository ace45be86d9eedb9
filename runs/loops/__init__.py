"""The model loop: a conversation with a language model, recomputed from the journal at each request."""
