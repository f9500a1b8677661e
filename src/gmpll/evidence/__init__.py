"""What speaks for a label: learners with out-of-sample predictions, and how they are joined."""
