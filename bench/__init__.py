"""Figures beside the peers: `python -m bench codec`."""
