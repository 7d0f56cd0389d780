// The Go client: `client [--limit-words N] address scenario…` runs each scenario on connections of
// its own and prints one line of JSON for it.  N is the server's limit.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"

	"capnproto.org/go/capnp/v3"
	"capnproto.org/go/capnp/v3/exc"
	"capnproto.org/go/capnp/v3/rpc"

	"capnwire/peers/common"
	pc "capnwire/peers/peercapnp"
)

// Scenarios panic with an error where something is not as expected.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func equal[T comparable](got, wanted T) {
	if got != wanted {
		panic(fmt.Errorf("got %v, wanted %v", got, wanted))
	}
}

func expectFailure(err error, kind exc.Type, text string) {
	if err == nil {
		panic(fmt.Errorf("no exception, wanted %v: %s", kind, text))
	}
	if exc.TypeOf(err) != kind || !strings.Contains(err.Error(), text) {
		panic(fmt.Errorf("%v: %w, wanted %v: %s", exc.TypeOf(err), err, kind, text))
	}
}

type connection struct {
	conn   *rpc.Conn
	server pc.Peer
}

func connect(ctx context.Context, address string) connection {
	network, place := common.Split(address)
	socket := must(net.Dial(network, place))
	conn := rpc.NewConn(common.Transport(socket, 8<<20), nil)
	return connection{conn, pc.Peer(conn.Bootstrap(ctx))}
}

type calling struct {
	function func(int64) (int64, error)
	alive    *common.Level
}

func (c *calling) Call(_ context.Context, call pc.Callback_call) error {
	call.Go()
	results, err := call.AllocResults()
	if err != nil {
		return err
	}
	value, err := c.function(call.Args().Value())
	if err != nil {
		return err
	}
	results.SetValue(value)
	return results.SetCounter(pc.Counter(common.NewCounting(c.alive, "")))
}

// A result that is still on its way.
type pending[T any] func() (T, error)

func await[T any](call pending[T]) T { return must(call()) }

type run struct {
	context.Context
	options common.Options
	connection
	alive common.Level
}

func (r *run) own() pc.Counter { return pc.Counter(common.NewCounting(&r.alive, "")) }

func (r *run) callback(function func(int64) (int64, error)) pc.Callback {
	return pc.Callback_ServerToClient(&calling{function, &r.alive})
}

func (r *run) echo(server pc.Peer, value int64) pending[int64] {
	future, release := server.EchoInt(r, func(params pc.Peer_echoInt_Params) error {
		params.SetValue(value)
		return nil
	})
	return func() (int64, error) {
		defer release()
		results, err := future.Struct()
		return results.Value(), err
	}
}

func (r *run) next(counter pc.Counter) pending[uint32] {
	future, release := counter.Next(r, nil)
	return func() (uint32, error) {
		defer release()
		results, err := future.Struct()
		return results.Value(), err
	}
}

func (r *run) name(named pc.Named) string {
	future, release := named.Name(r, nil)
	defer release()
	return must(must(future.Struct()).Name())
}

func (r *run) callHeld(server pc.Peer) pending[uint32] {
	future, release := server.CallHeld(r, nil)
	return func() (uint32, error) {
		defer release()
		results, err := future.Struct()
		return results.Value(), err
	}
}

func (r *run) hold(server pc.Peer, counter pc.Counter) {
	future, release := server.Hold(r, func(params pc.Peer_hold_Params) error {
		return params.SetCounter(counter)
	})
	defer release()
	must(future.Struct())
}

func (r *run) drop() {
	future, release := r.server.Drop(r, nil)
	defer release()
	must(future.Struct())
}

func (r *run) getNamed(name string) pc.Named {
	future, release := r.server.GetNamed(r, func(params pc.Peer_getNamed_Params) error {
		return params.SetName(name)
	})
	defer release()
	return must(future.Struct()).Named().AddRef()
}

func (r *run) getLate() pc.Counter {
	future, release := r.server.Late(r, nil)
	defer release()
	return must(future.Struct()).Counter().AddRef()
}

func (r *run) startResolveLate(how pc.Resolution) func() {
	future, release := r.server.ResolveLate(r, func(params pc.Peer_resolveLate_Params) error {
		params.SetHow(how)
		return nil
	})
	return func() {
		defer release()
		must(future.Struct())
	}
}

func (r *run) waitBlocked(count uint32) {
	future, release := r.server.WaitBlocked(r, func(params pc.Peer_waitBlocked_Params) error {
		params.SetCount(count)
		return nil
	})
	defer release()
	must(future.Struct())
}

func (r *run) waitAlive(count uint32) {
	future, release := r.server.WaitAlive(r, func(params pc.Peer_waitAlive_Params) error {
		params.SetCount(count)
		return nil
	})
	defer release()
	must(future.Struct())
}

func (r *run) openSink() pc.Sink {
	future, release := r.server.OpenSink(r, nil)
	defer release()
	return must(future.Struct()).Sink().AddRef()
}

func (r *run) sum(callback pc.Callback, times uint32) (int64, error) {
	future, release := r.server.CallBack(r, func(params pc.Peer_callBack_Params) error {
		params.SetTimes(times)
		return params.SetCallback(callback)
	})
	defer release()
	results, err := future.Struct()
	return results.Sum(), err
}

func expectOrder(calls []pending[uint32]) {
	for i, call := range calls {
		equal(await(call), uint32(i))
	}
}

func echoInt(r *run) {
	for _, value := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		equal(await(r.echo(r.server, value)), value)
	}
}

func echoText(r *run) {
	for _, text := range []string{"", "plain", "Ünïcødé ✓ 😀"} {
		future, release := r.server.EchoText(r, func(params pc.Peer_echoText_Params) error {
			return params.SetValue(text)
		})
		equal(must(must(future.Struct()).Value()), text)
		release()
	}
}

func echoData(r *run) {
	for _, size := range []int{0, 1, 256, 1000000} {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(i)
		}
		future, release := r.server.EchoData(r, func(params pc.Peer_echoData_Params) error {
			return params.SetValue(data)
		})
		equal(bytes.Equal(must(must(future.Struct()).Value()), data), true)
		release()
	}
}

func burst(r *run) {
	var calls []pending[int64]
	for i := int64(0); i < 1000; i++ {
		calls = append(calls, r.echo(r.server, i))
	}
	for i, call := range calls {
		equal(await(call), int64(i))
	}
}

func order(r *run) {
	named := r.getNamed("order")
	var calls []pending[uint32]
	for i := 0; i < 100; i++ {
		calls = append(calls, r.next(pc.Counter(named)))
	}
	expectOrder(calls)
}

func pipeline(r *run) {
	future, release := r.server.GetNamed(r, func(params pc.Peer_getNamed_Params) error {
		return params.SetName("early")
	})
	defer release()
	early := future.Named() // once: a second time for the same field deadlocks in this library
	name, releaseName := early.Name(r, nil)
	defer releaseName()
	first := r.next(pc.Counter(early))
	equal(must(must(name.Struct()).Name()), "early")
	equal(await(first), 0)
	named := must(future.Struct()).Named()
	equal(await(r.next(pc.Counter(named))), 1)
}

func pipelineNested(r *run) {
	future, release := r.server.GetNested(r, func(params pc.Peer_getNested_Params) error {
		return params.SetName("deep")
	})
	defer release()
	equal(r.name(future.Outer().Inner().Named()), "deep")
	outer := must(must(future.Struct()).Outer())
	equal(must(outer.Pad()), "x")
	equal(must(must(outer.Inner()).Pad()), "x")
}

func pipelineFailed(r *run) {
	future, release := r.server.Fail(r, func(params pc.Peer_fail_Params) error {
		params.SetKind(pc.Kind_failed)
		return params.SetText("no object")
	})
	defer release()
	_, err := r.next(pc.Counter(future.Named()))()
	expectFailure(err, exc.Failed, "no object")
	_, err = future.Struct()
	expectFailure(err, exc.Failed, "no object")
	equal(await(r.echo(r.server, 1)), 1)
}

func inheritance(r *run) {
	counter := pc.Counter(r.getNamed("both"))
	equal(await(r.next(counter)), 0)
	equal(r.name(pc.Named(counter)), "both")
}

func unimplemented(r *run) {
	future, release := pc.Stranger(r.server).Unknown(r, nil)
	defer release()
	_, err := future.Struct()
	expectFailure(err, exc.Unimplemented, "")
	equal(await(r.echo(r.server, 1)), 1)
}

func exceptions(r *run) {
	for _, kind := range []pc.Kind{
		pc.Kind_failed, pc.Kind_overloaded, pc.Kind_disconnected, pc.Kind_unimplemented,
	} {
		future, release := r.server.Fail(r, func(params pc.Peer_fail_Params) error {
			params.SetKind(kind)
			return params.SetText("ä reason")
		})
		_, err := future.Struct()
		expectFailure(err, exc.Type(kind), "ä reason")
		release()
	}
	equal(await(r.echo(r.server, 1)), 1)
}

func passOwn(r *run) {
	mine := r.own()
	future, release := r.server.EchoCounter(r, func(params pc.Peer_echoCounter_Params) error {
		return params.SetCounter(mine.AddRef())
	})
	defer release()
	equal(await(r.next(must(future.Struct()).Counter())), 0)
	equal(await(r.next(mine)), 1)
}

func holdDrop(r *run) {
	r.hold(r.server, r.own())
	equal(await(r.callHeld(r.server)), 0)
	equal(await(r.callHeld(r.server)), 1)
	equal(r.alive.Value(), 1)
	r.drop()
	r.alive.Until(0)
}

func release(r *run) {
	r.waitAlive(0)
	first, second := r.getNamed("first"), r.getNamed("second")
	r.waitAlive(2)
	first.Release()
	second.Release()
	r.waitAlive(0)
}

func nullCapability(r *run) {
	future, release := r.server.EchoCounter(r, nil)
	defer release()
	equal(must(future.Struct()).HasCounter(), false)
	r.hold(r.server, pc.Counter{})
	_, err := r.callHeld(r.server)()
	expectFailure(err, exc.Failed, "")
}

func callback(r *run) {
	var seen []int64
	sum := must(r.sum(r.callback(func(value int64) (int64, error) {
		seen = append(seen, value)
		return value * 10, nil
	}), 5))
	equal(sum, 100)
	equal(fmt.Sprint(seen), "[0 1 2 3 4]")
}

func callbackReentrant(r *run) {
	equal(must(r.sum(r.callback(func(value int64) (int64, error) {
		return r.echo(r.server, value+1)()
	}), 5)), 15)
}

func callbackFails(r *run) {
	_, err := r.sum(r.callback(func(int64) (int64, error) {
		return 0, errors.New("callback broke")
	}), 1)
	expectFailure(err, exc.Failed, "callback broke")
}

func forward(r *run) {
	future, release := r.server.Forward(r, func(params pc.Peer_forward_Params) error {
		params.SetValue(41)
		return params.SetCallback(r.callback(func(value int64) (int64, error) {
			return value + 1, nil
		}))
	})
	defer release()
	first := r.next(future.Counter())
	called := must(future.Struct())
	equal(called.Value(), 42)
	equal(await(first), 0)
	equal(await(r.next(called.Counter())), 1)
}

func late(r *run) {
	counter := r.getLate()
	calls := []pending[uint32]{r.next(counter), r.next(counter)}
	r.startResolveLate(pc.Resolution_fresh)()
	expectOrder(append(calls, r.next(counter)))
}

func lateBroken(r *run) {
	counter := r.getLate()
	call := r.next(counter)
	r.startResolveLate(pc.Resolution_broken)()
	_, err := call()
	expectFailure(err, exc.Failed, "late broke")
	_, err = r.next(counter)()
	expectFailure(err, exc.Failed, "late broke")
}

func lateParam(r *run) {
	promise, resolver := capnp.NewLocalPromise[pc.Counter]()
	r.hold(r.server, promise)
	calls := []pending[uint32]{r.callHeld(r.server), r.callHeld(r.server)}
	equal(await(r.echo(r.server, 1)), 1)
	resolver.Fulfill(r.own())
	expectOrder(append(calls, r.callHeld(r.server)))
}

func lateParamDrop(r *run) {
	promise, resolver := capnp.NewLocalPromise[pc.Counter]()
	r.hold(r.server, promise)
	resolver.Fulfill(r.own())
	equal(await(r.callHeld(r.server)), 0)
	r.drop()
	r.alive.Until(0)
}

func lateParamBroken(r *run) {
	promise, resolver := capnp.NewLocalPromise[pc.Counter]()
	r.hold(r.server, promise)
	call := r.callHeld(r.server)
	equal(await(r.echo(r.server, 1)), 1)
	resolver.Reject(errors.New("param broke"))
	_, err := call()
	expectFailure(err, exc.Failed, "param broke")
}

func embargoAnswer(r *run) {
	future, release := r.server.EchoCounter(r, func(params pc.Peer_echoCounter_Params) error {
		return params.SetCounter(r.own())
	})
	defer release()
	early := future.Counter()
	calls := []pending[uint32]{r.next(early), r.next(early)}
	results := must(future.Struct())
	// early is now our own object, but two calls are on their way
	expectOrder(append(calls, r.next(early), r.next(early)))
	equal(await(r.next(results.Counter())), 4)
}

func embargoResolve(r *run) {
	r.hold(r.server, r.own())
	counter := r.getLate()
	calls := []pending[uint32]{r.next(counter), r.next(counter)}
	resolved := r.startResolveLate(pc.Resolution_held)
	calls = append(calls, r.next(counter))
	resolved()
	expectOrder(append(calls, r.next(counter), r.next(counter)))
	r.drop()
}

func cancel(r *run) {
	ctx, stop := context.WithCancel(r)
	_, release := r.server.Block(ctx, nil)
	defer release()
	r.waitBlocked(1)
	stop()
	r.waitBlocked(0)
	equal(await(r.echo(r.server, 1)), 1)
}

// Connection two holds what connection one is given, and calls it: the server forwards.
func relay(r *run) {
	other := connect(r, r.options.Address)
	r.hold(other.server, r.own())
	equal(await(r.callHeld(r.server)), 0)
	future, release := r.server.Held(r, nil)
	defer release()
	through := must(future.Struct()).Counter()
	equal(await(r.callHeld(other.server)), 1)
	equal(await(r.next(through)), 2)
	// And the other way round: this process forwards from one connection to the other.
	r.hold(other.server, pc.Counter(r.getNamed("relayed")))
	equal(await(r.callHeld(r.server)), 0)
	r.drop()
	check(other.conn.Close())
}

func clientGone(r *run) {
	other := connect(r, r.options.Address)
	_, release := other.server.Block(r, nil)
	defer release()
	r.waitBlocked(1)
	check(other.conn.Close())
	r.waitBlocked(0)
}

func stream(r *run) {
	sink := r.openSink()
	block := make([]byte, 4096)
	for i := uint32(0); i < 500; i++ {
		check(sink.Write(r, func(params pc.Sink_write_Params) error {
			params.SetIndex(i)
			return params.SetBytes(block)
		}))
	}
	future, release := sink.Done(r, nil)
	defer release()
	done := must(future.Struct())
	equal(done.Writes(), 500)
	equal(done.Total(), 500*4096)
	equal(done.InOrder(), true)
	check(sink.WaitStreaming())
}

func streamError(r *run) {
	sink := r.openSink()
	for i := uint32(0); i < 3; i++ {
		// The error of an earlier write may show here already.
		_ = sink.Write(r, func(params pc.Sink_write_Params) error {
			params.SetIndex(i)
			if i == 1 {
				return nil
			}
			return params.SetBytes([]byte("0123456789"))
		})
	}
	future, release := sink.Done(r, nil)
	defer release()
	_, err := future.Struct()
	expectFailure(err, exc.Failed, "empty block")
}

func (r *run) measure(bytes uint64) (uint64, error) {
	future, release := r.server.Measure(r, func(params pc.Peer_measure_Params) error {
		return params.SetValue(make([]byte, bytes))
	})
	defer release()
	results, err := future.Struct()
	return results.Bytes(), err
}

func sizeLimit(r *run) {
	under := (r.options.LimitWords - 256) * 8
	equal(must(r.measure(under)), under)
	equal(must(r.measure(under)), under)
	_, err := r.measure((r.options.LimitWords + 256) * 8)
	equal(err != nil, true)
	equal(await(r.echo(connect(r, r.options.Address).server, 1)), 1)
}

func bigResult(r *run) {
	future, release := r.server.Big(r, func(params pc.Peer_big_Params) error {
		params.SetBytes(3000000)
		return nil
	})
	defer release()
	value := must(must(future.Struct()).Value())
	equal(len(value), 3000000)
	for i, got := range value {
		equal(got, byte(i%251))
	}
}

func quit(r *run) {
	named := r.getNamed("gone")
	blocked, releaseBlocked := r.server.Block(r, nil)
	defer releaseBlocked()
	pending := r.next(blocked.Counter())
	future, release := r.server.Quit(r, nil)
	defer release()
	_, err := future.Struct()
	expectFailure(err, exc.Disconnected, "")
	_, err = pending()
	expectFailure(err, exc.Disconnected, "")
	_, err = r.next(pc.Counter(named))()
	expectFailure(err, exc.Disconnected, "")
	<-r.conn.Done()
}

var scenarios = map[string]func(*run){
	"echo_int":           echoInt,
	"echo_text":          echoText,
	"echo_data":          echoData,
	"burst":              burst,
	"order":              order,
	"pipeline":           pipeline,
	"pipeline_nested":    pipelineNested,
	"pipeline_failed":    pipelineFailed,
	"inheritance":        inheritance,
	"unimplemented":      unimplemented,
	"exceptions":         exceptions,
	"pass_own":           passOwn,
	"hold_drop":          holdDrop,
	"release":            release,
	"null_capability":    nullCapability,
	"callback":           callback,
	"callback_reentrant": callbackReentrant,
	"callback_fails":     callbackFails,
	"forward":            forward,
	"late":               late,
	"late_broken":        lateBroken,
	"late_param":         lateParam,
	"late_param_drop":    lateParamDrop,
	"late_param_broken":  lateParamBroken,
	"embargo_answer":     embargoAnswer,
	"embargo_resolve":    embargoResolve,
	"cancel":             cancel,
	"relay":              relay,
	"client_gone":        clientGone,
	"stream":             stream,
	"stream_error":       streamError,
	"size_limit":         sizeLimit,
	"big_result":         bigResult,
	"quit":               quit,
}

type outcome struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func attempt(options common.Options, name string) (result outcome) {
	result.Name = name
	defer func() {
		if failure := recover(); failure != nil {
			result.OK, result.Detail = false, fmt.Sprint(failure)
		}
	}()
	scenario, ok := scenarios[name]
	if !ok {
		panic("no such scenario")
	}
	ctx := context.Background()
	r := &run{Context: ctx, options: options, connection: connect(ctx, options.Address)}
	scenario(r)
	_ = r.conn.Close()
	result.OK = true
	return result
}

func main() {
	options := common.Parse()
	for _, name := range options.Names {
		check(json.NewEncoder(os.Stdout).Encode(attempt(options, name)))
	}
}
