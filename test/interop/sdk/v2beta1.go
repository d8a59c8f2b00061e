package main

import (
	"context"
	"iter"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The functions below derive the client of v2beta1 from that of v2. The messages of both have the same wire format, so
// only the methods have to be given.

func v2beta1Reader[G, L, T, B proto.Message](v2 versionClient[T], get rpc[G, B], list func(context.Context, L) iter.Seq2[B, error]) versionClient[B] {
	return v2Reader(get, list, func(resource B) []any { return v2.fields(convert[T](resource)) })
}

func withV2beta1Writes[C, D, T, B proto.Message](v2 versionClient[T], beta versionClient[B], create rpc[C, B], remove rpc[D, *emptypb.Empty]) versionClient[B] {
	return withWrites(beta, create, func(parent string, n int) C { return convert[C](v2.createRequest(parent, n)) }, remove)
}

func withV2beta1Update[U, T, B proto.Message](v2 versionClient[T], beta versionClient[B], update rpc[U, B]) versionClient[B] {
	return withUpdate(beta, update, func(resource B) U { return convert[U](v2.updateRequest(convert[T](resource))) })
}

// convert converts a message to the message of another version with the same wire format.
func convert[M proto.Message](message proto.Message) M {
	converted, _ := newMessage[M]()
	wire, err := proto.Marshal(message)
	if err == nil {
		err = proto.Unmarshal(wire, converted)
	}
	if err != nil {
		panic(err)
	}
	return converted
}
