// The Go server: `server [--limit-words N] address` prints its address and serves until its
// standard input ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"capnproto.org/go/capnp/v3"
	"capnproto.org/go/capnp/v3/exc"
	"capnproto.org/go/capnp/v3/rpc"

	"capnwire/peers/common"
	pc "capnwire/peers/peercapnp"
)

type collecting struct {
	writes   uint32
	total    uint64
	disorder bool
	err      error
}

func (s *collecting) Write(_ context.Context, call pc.Sink_write) error {
	bytes, err := call.Args().Bytes()
	if err != nil {
		return err
	}
	if s.err == nil && len(bytes) == 0 {
		s.err = errors.New("empty block")
	}
	if s.err != nil {
		return s.err
	}
	s.disorder = s.disorder || call.Args().Index() != s.writes
	s.writes++
	s.total += uint64(len(bytes))
	return nil
}

func (s *collecting) Done(_ context.Context, call pc.Sink_done) error {
	if s.err != nil {
		return s.err
	}
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	results.SetWrites(s.writes)
	results.SetTotal(s.total)
	results.SetInOrder(!s.disorder)
	return nil
}

type serving struct {
	blocked, alive common.Level

	mutex    sync.Mutex
	held     pc.Counter
	promised []capnp.Resolver[pc.Counter]
}

func (s *serving) EchoInt(_ context.Context, call pc.Peer_echoInt) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	results.SetValue(call.Args().Value())
	return nil
}

func (s *serving) EchoText(_ context.Context, call pc.Peer_echoText) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	value, err := call.Args().Value()
	if err != nil {
		return err
	}
	return results.SetValue(value)
}

func (s *serving) EchoData(_ context.Context, call pc.Peer_echoData) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	value, err := call.Args().Value()
	if err != nil {
		return err
	}
	return results.SetValue(value)
}

func (s *serving) Measure(_ context.Context, call pc.Peer_measure) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	value, err := call.Args().Value()
	results.SetBytes(uint64(len(value)))
	return err
}

func (s *serving) Big(_ context.Context, call pc.Peer_big) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	value := make([]byte, call.Args().Bytes())
	for i := range value {
		value[i] = byte(i % 251)
	}
	return results.SetValue(value)
}

func (s *serving) Fail(_ context.Context, call pc.Peer_fail) error {
	text, err := call.Args().Text()
	if err != nil {
		return err
	}
	return exc.New(exc.Type(call.Args().Kind()), "", text)
}

func (s *serving) GetNamed(_ context.Context, call pc.Peer_getNamed) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	name, err := call.Args().Name()
	if err != nil {
		return err
	}
	return results.SetNamed(common.NewCounting(&s.alive, name))
}

func (s *serving) GetNested(_ context.Context, call pc.Peer_getNested) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	name, err := call.Args().Name()
	if err != nil {
		return err
	}
	outer, err := results.NewOuter()
	if err != nil {
		return err
	}
	inner, err := outer.NewInner()
	if err != nil {
		return err
	}
	return errors.Join(outer.SetPad("x"), inner.SetPad("x"),
		inner.SetNamed(common.NewCounting(&s.alive, name)))
}

func (s *serving) EchoCounter(_ context.Context, call pc.Peer_echoCounter) error {
	results, err := call.AllocResults()
	if err != nil || !call.Args().HasCounter() {
		return err
	}
	return results.SetCounter(call.Args().Counter().AddRef())
}

func (s *serving) CallBack(ctx context.Context, call pc.Peer_callBack) error {
	call.Go()
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	sum := int64(0)
	for i := uint32(0); i < call.Args().Times(); i++ {
		future, release := call.Args().Callback().Call(ctx, func(params pc.Callback_call_Params) error {
			params.SetValue(int64(i))
			return nil
		})
		called, err := future.Struct()
		if err != nil {
			return err
		}
		sum += called.Value()
		release()
	}
	results.SetSum(sum)
	return nil
}

// By hand, for this library has no tail calls.
func (s *serving) Forward(ctx context.Context, call pc.Peer_forward) error {
	call.Go()
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	future, release := call.Args().Callback().Call(ctx, func(params pc.Callback_call_Params) error {
		params.SetValue(call.Args().Value())
		return nil
	})
	defer release()
	called, err := future.Struct()
	if err != nil {
		return err
	}
	results.SetValue(called.Value())
	if !called.HasCounter() {
		return nil
	}
	return results.SetCounter(called.Counter().AddRef())
}

func (s *serving) exchange(counter pc.Counter) {
	s.mutex.Lock()
	before := s.held
	s.held = counter
	s.mutex.Unlock()
	before.Release()
}

func (s *serving) heldRef() pc.Counter {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.held.AddRef()
}

func (s *serving) Hold(_ context.Context, call pc.Peer_hold) error {
	s.exchange(call.Args().Counter().AddRef())
	return nil
}

func (s *serving) Held(_ context.Context, call pc.Peer_held) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	return results.SetCounter(s.heldRef())
}

func (s *serving) CallHeld(ctx context.Context, call pc.Peer_callHeld) error {
	held := s.heldRef()
	defer held.Release()
	future, release := held.Next(ctx, nil)
	defer release()
	call.Go() // after the call is sent: calls on the held object keep their order
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	next, err := future.Struct()
	if err != nil {
		return err
	}
	results.SetValue(next.Value())
	return nil
}

func (s *serving) Drop(_ context.Context, _ pc.Peer_drop) error {
	s.exchange(pc.Counter{})
	return nil
}

func (s *serving) Late(_ context.Context, call pc.Peer_late) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	client, resolver := capnp.NewLocalPromise[pc.Counter]()
	s.mutex.Lock()
	s.promised = append(s.promised, resolver)
	s.mutex.Unlock()
	// A reference is kept for ever: else this library forgets what the promise resolved to once the
	// caller releases it, with calls on it still waiting ("call on null client").
	return results.SetCounter(client.AddRef())
}

func (s *serving) ResolveLate(_ context.Context, call pc.Peer_resolveLate) error {
	s.mutex.Lock()
	promised := s.promised
	s.promised = nil
	s.mutex.Unlock()
	for _, resolver := range promised {
		switch call.Args().How() {
		case pc.Resolution_fresh:
			// Not counted: this library keeps what a local promise resolved to.
			resolver.Fulfill(pc.Counter(common.NewCounting(&common.Level{}, "")))
		case pc.Resolution_held:
			resolver.Fulfill(s.heldRef())
		case pc.Resolution_broken:
			resolver.Reject(errors.New("late broke"))
		}
	}
	return nil
}

func (s *serving) Block(ctx context.Context, call pc.Peer_block) error {
	call.Go()
	s.blocked.Add(1)
	defer s.blocked.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func (s *serving) WaitBlocked(_ context.Context, call pc.Peer_waitBlocked) error {
	call.Go()
	s.blocked.Until(int(call.Args().Count()))
	return nil
}

func (s *serving) WaitAlive(_ context.Context, call pc.Peer_waitAlive) error {
	call.Go()
	s.alive.Until(int(call.Args().Count()))
	return nil
}

func (s *serving) OpenSink(_ context.Context, call pc.Peer_openSink) error {
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	return results.SetSink(pc.Sink_ServerToClient(&collecting{}))
}

func (s *serving) Quit(context.Context, pc.Peer_quit) error {
	os.Exit(0)
	return nil
}

func main() {
	options := common.Parse()
	network, place := common.Split(options.Address)
	listener, err := net.Listen(network, place)
	if err != nil {
		panic(err)
	}
	if network == "tcp" {
		fmt.Printf("tcp://%s\n", listener.Addr())
	} else {
		fmt.Println(options.Address)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	bootstrap := pc.Peer_ServerToClient(&serving{})
	for {
		conn, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		rpc.NewConn(common.Transport(conn, options.LimitWords), &rpc.Options{
			BootstrapClient: capnp.Client(bootstrap.AddRef()),
		})
	}
}
