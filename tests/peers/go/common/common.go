// Package common holds what the Go server and client share: addresses, objects that count,
// conditions to wait for.
package common

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"capnproto.org/go/capnp/v3"
	"capnproto.org/go/capnp/v3/rpc/transport"

	pc "capnwire/peers/peercapnp"
)

// Options are the words of the command line.
type Options struct {
	Address    string // tcp://host:port or unix:/path
	LimitWords uint64 // the server's receive limit
	Names      []string
}

// Parse reads the command line.
func Parse() Options {
	options := Options{LimitWords: 8 << 20}
	for words := os.Args[1:]; len(words) > 0; words = words[1:] {
		switch {
		case words[0] == "--limit-words":
			options.LimitWords, _ = strconv.ParseUint(words[1], 10, 64)
			words = words[1:]
		case options.Address == "":
			options.Address = words[0]
		default:
			options.Names = append(options.Names, words[0])
		}
	}
	return options
}

// Split gives what net.Listen and net.Dial ask for.
func Split(address string) (network, place string) {
	if strings.HasPrefix(address, "unix:") {
		return "unix", strings.TrimPrefix(address, "unix:")
	}
	return "tcp", strings.TrimPrefix(address, "tcp://")
}

type codec struct {
	*capnp.Encoder
	*capnp.Decoder
	io.Closer
}

// Transport is the plain stream transport with a limit for received messages.
func Transport(conn net.Conn, limitWords uint64) transport.Transport {
	decoder := capnp.NewDecoder(conn)
	decoder.MaxMessageSize = limitWords * 8
	return transport.New(codec{capnp.NewEncoder(conn), decoder, conn})
}

// Level is a number to wait for.
type Level struct {
	mutex   sync.Mutex
	changed sync.Cond
	value   int
}

// Add changes the number.
func (l *Level) Add(difference int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.value += difference
	l.changed.L = &l.mutex
	l.changed.Broadcast()
}

// Value is the number now.
func (l *Level) Value() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.value
}

// Until returns once the number is the wanted one.
func (l *Level) Until(wanted int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.changed.L = &l.mutex
	for l.value != wanted {
		l.changed.Wait()
	}
}

// Counting serves Named.
type Counting struct {
	alive *Level
	name  string
	count uint32
}

// NewCounting counts in `alive` until the last reference is released.
func NewCounting(alive *Level, name string) pc.Named {
	alive.Add(1)
	return pc.Named_ServerToClient(&Counting{alive: alive, name: name})
}

// Shutdown is called when the last reference is released.
func (c *Counting) Shutdown() { c.alive.Add(-1) }

// Next gives 0, 1, 2, …
func (c *Counting) Next(_ context.Context, call pc.Counter_next) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	results.SetValue(c.count)
	c.count++
	return nil
}

// Name gives what the object was made with.
func (c *Counting) Name(_ context.Context, call pc.Named_name) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	return results.SetName(c.name)
}
