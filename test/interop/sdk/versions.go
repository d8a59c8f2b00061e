package main

import (
	"context"
	"fmt"
	"iter"

	sdk "chainguard.dev/sdk/proto/chainguard/platform/iter"
	common "chainguard.dev/sdk/proto/platform/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
)

// pageSize is small, so that a few things make several pages for the SDK's iterators.
const pageSize int32 = 2

// rpc is a method of a client, which asks Q and is answered A.
type rpc[Q, A proto.Message] = func(context.Context, Q, ...grpc.CallOption) (A, error)

// early reads by v1, which has but lists.
func early[F proto.Message, L interface{ GetItems() []T }, T proto.Message](
	list func(context.Context, F, ...grpc.CallOption) (L, error), facts func(T) []any,
) life[T] {
	items := func(ctx context.Context, filter F) ([]T, error) {
		found, err := list(ctx, filter)
		return found.GetItems(), err
	}
	return life[T]{
		facts: facts,
		read: func(ctx context.Context, id string) (T, error) {
			found, err := items(ctx, about[F](id))
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("there are %d of %s", len(found), id)
			}
			if err != nil {
				var none T
				return none, err
			}
			return found[0], nil
		},
		list: func(ctx context.Context, parent string) ([]T, error) { return items(ctx, under[F](parent)) },
	}
}

// late reads by v2 and v2beta1, with an iterator over the pages of a list.
func late[G, L, T proto.Message](get rpc[G, T], list func(context.Context, L) iter.Seq2[T, error], facts func(T) []any) life[T] {
	return life[T]{
		facts: facts,
		read:  func(ctx context.Context, id string) (T, error) { return get(ctx, about[G](id)) },
		list:  func(ctx context.Context, parent string) ([]T, error) { return sdk.All(list(ctx, under[L](parent))) },
	}
}

// written adds creations and deletions.
func written[C, D, T proto.Message](l life[T], create rpc[C, T], body func(parent string, n int) C, remove rpc[D, *emptypb.Empty]) life[T] {
	l.body = func(parent string, n int) proto.Message { return body(parent, n) }
	l.create = func(ctx context.Context, parent string, n int) (T, error) { return create(ctx, body(parent, n)) }
	l.remove = func(ctx context.Context, id string) error {
		_, err := remove(ctx, about[D](id))
		return err
	}
	return l
}

// changed adds updates, whose request holds the thing as it was read, but for a change.
func changed[U, T proto.Message](l life[T], update rpc[U, T], change func(T) U) life[T] {
	l.change = func(thing T) proto.Message { return change(thing) }
	l.update = func(ctx context.Context, thing T) (T, error) { return update(ctx, change(thing)) }
	return l
}

// about is a request that names a thing.
func about[Q proto.Message](id string) Q {
	request, fields := blank[Q]()
	fields.Set(idField(fields), protoreflect.ValueOfString(id))
	return request
}

// under is the request for a list of what a parent holds; where v1 has no such filter, it has one by group.
func under[Q proto.Message](parent string) Q {
	request, fields := blank[Q]()
	known := fields.Descriptor().Fields()
	// That of a list of v1 is another type, and such a list comes whole without one.
	if size := known.ByName("page_size"); size != nil && size.Kind() == protoreflect.Int32Kind {
		fields.Set(size, protoreflect.ValueOfInt32(pageSize))
	}
	if uidp := known.ByName("uidp"); uidp != nil {
		children := &common.UIDPFilter{ChildrenOf: parent}
		fields.Set(uidp, protoreflect.ValueOfMessage(children.ProtoReflect()))
	} else {
		fields.Set(known.ByName("group"), protoreflect.ValueOfString(parent))
	}
	return request
}

func blank[Q proto.Message]() (Q, protoreflect.Message) {
	var none Q
	fields := none.ProtoReflect().New()
	return fields.Interface().(Q), fields
}

func idOf(thing proto.Message) string {
	fields := thing.ProtoReflect()
	return fields.Get(idField(fields)).String()
}

// idField is named otherwise in v1, where the id of associations is that of their group.
func idField(fields protoreflect.Message) protoreflect.FieldDescriptor {
	for _, name := range []protoreflect.Name{"uid", "id", "group"} {
		if field := fields.Descriptor().Fields().ByName(name); field != nil {
			return field
		}
	}
	panic(fmt.Sprintf("%s has no id", fields.Descriptor().FullName()))
}
