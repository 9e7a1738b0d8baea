"""Training: the policy of the walk, and embeddings of the graph. Nothing else imports it;
the command line starts it."""
