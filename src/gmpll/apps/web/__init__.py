"""What every local web server of the package shares: who may talk to it, and how it listens."""
