"""What random numbers can be seeded with: 0 to :data:`LARGEST_SEED`."""

LARGEST_SEED = 2**32 - 1
