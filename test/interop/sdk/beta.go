package main

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// What follows derives the life of a thing in v2beta1 from that in v2: the messages of both are the same on the wire, so
// that only the calls have to be named again.

func readLike[G, L, T, B proto.Message](v2 life[T], get rpc[G, B], list func(context.Context, L) iter.Seq2[B, error]) life[B] {
	return late(get, list, func(thing B) []any { return v2.facts(as[T](thing)) })
}

func writtenLike[C, D, T, B proto.Message](v2 life[T], beta life[B], create rpc[C, B], remove rpc[D, *emptypb.Empty]) life[B] {
	return written(beta, create, func(parent string, n int) C { return as[C](v2.body(parent, n)) }, remove)
}

func changedLike[U, T, B proto.Message](v2 life[T], beta life[B], update rpc[U, B]) life[B] {
	return changed(beta, update, func(thing B) U { return as[U](v2.change(as[T](thing))) })
}

// as is a message of one version as the other has it.
func as[M proto.Message](message proto.Message) M {
	twin, _ := blank[M]()
	wire, err := proto.Marshal(message)
	if err == nil {
		err = proto.Unmarshal(wire, twin)
	}
	if err != nil {
		panic(err)
	}
	return twin
}
