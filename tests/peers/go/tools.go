//go:build tools

// Keeps the code generator in go.mod and go.sum.
package peers

import _ "capnproto.org/go/capnp/v3/capnpc-go"
