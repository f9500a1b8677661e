"""From features to relations between instances: directions, neighbours, similarities, weights."""
