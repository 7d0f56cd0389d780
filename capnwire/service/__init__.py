"""What RPC, Cap'n Web and the drop-in share: references, methods, servers and clients."""
