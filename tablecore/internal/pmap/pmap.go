// Package pmap holds a persistent map from strings, which an immutable state
// can afford to keep: an edit costs the path it touches, not the map.
package pmap

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// Map is a persistent map from strings: an edit gives a new map that shares
// all but the touched path with the old one (a hash array mapped trie, Bagwell
// 2001). Reading is safe from many goroutines. The zero value is empty.
//
// Edits carry an owner. Nodes made under an owner are changed in place by later
// edits under the same one, so that a batch of edits copies each node once; the
// maps handed out before a batch never see it, since their nodes have other
// owners.
type Map[V any] struct {
	root *trieNode[V]
	n    int
}

// Owner is the identity of one batch of edits. It has a size so that two
// owners never share an address.
type Owner struct{ _ byte }

// trieNode holds up to 32 slots, one for each 5-bit piece of the hash that occurs,
// in the order of the pieces. Below the last piece of the hash a node holds
// keys with equal hashes, in no order and without a bitmap.
type trieNode[V any] struct {
	owner  *Owner
	bitmap uint32
	slots  []trieSlot[V]
}

// trieSlot is either a node or a leaf.
type trieSlot[V any] struct {
	node *trieNode[V]
	leaf *trieLeaf[V]
}

type trieLeaf[V any] struct {
	hash  uint64
	key   string
	value V
}

const (
	pieceBits = 5
	hashBits  = 64
)

// hashSeed is random, so that nobody can prepare keys that collide. No order
// that the package promises depends on it.
var hashSeed = maphash.MakeSeed()

// Len returns the number of entries.
func (m Map[V]) Len() int { return m.n }

// Get returns the value of a key, and whether there is one.
func (m Map[V]) Get(key string) (V, bool) {
	if leaf := m.find(maphash.String(hashSeed, key), key); leaf != nil {
		return leaf.value, true
	}
	var zero V
	return zero, false
}

func (m Map[V]) find(hash uint64, key string) *trieLeaf[V] {
	node := m.root
	for shift := 0; node != nil; shift += pieceBits {
		if shift >= hashBits {
			if i := node.collision(key); i >= 0 {
				return node.slots[i].leaf
			}
			return nil
		}
		i, taken := node.index(hash, shift)
		if !taken {
			return nil
		}
		slot := node.slots[i]
		if slot.leaf != nil {
			if slot.leaf.hash == hash && slot.leaf.key == key {
				return slot.leaf
			}
			return nil
		}
		node = slot.node
	}
	return nil
}

// All yields every entry, in an order that differs between processes.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.root != nil {
			m.root.walk(yield)
		}
	}
}

func (n *trieNode[V]) walk(yield func(string, V) bool) bool {
	for _, slot := range n.slots {
		if slot.leaf != nil {
			if !yield(slot.leaf.key, slot.leaf.value) {
				return false
			}
		} else if !slot.node.walk(yield) {
			return false
		}
	}
	return true
}

// Set puts an entry. The key's bytes stay referenced.
func (m *Map[V]) Set(o *Owner, key string, value V) {
	m.put(o, &trieLeaf[V]{maphash.String(hashSeed, key), key, value})
}

func (m *Map[V]) put(o *Owner, leaf *trieLeaf[V]) {
	if m.root == nil {
		m.root = &trieNode[V]{owner: o}
	}
	var added bool
	m.root, added = m.root.put(o, 0, leaf)
	if added {
		m.n++
	}
}

// Remove takes an entry out, if there is one.
func (m *Map[V]) Remove(o *Owner, key string) {
	m.removeHash(o, maphash.String(hashSeed, key), key)
}

func (m *Map[V]) removeHash(o *Owner, hash uint64, key string) {
	if m.find(hash, key) == nil {
		return
	}
	m.n--
	m.root = m.root.remove(o, 0, hash, key)
	if len(m.root.slots) == 0 {
		m.root = nil
	}
}

// index returns where the slot for the hash's piece at shift is or would be.
func (n *trieNode[V]) index(hash uint64, shift int) (int, bool) {
	bit := uint32(1) << (hash >> shift & 31)
	return bits.OnesCount32(n.bitmap & (bit - 1)), n.bitmap&bit != 0
}

func (n *trieNode[V]) collision(key string) int {
	for i, slot := range n.slots {
		if slot.leaf.key == key {
			return i
		}
	}
	return -1
}

// own returns the node itself if the owner made it, else a copy with room for
// extra slots.
func (n *trieNode[V]) own(o *Owner, extra int) *trieNode[V] {
	if n.owner == o {
		return n
	}
	slots := make([]trieSlot[V], len(n.slots), len(n.slots)+extra)
	copy(slots, n.slots)
	return &trieNode[V]{owner: o, bitmap: n.bitmap, slots: slots}
}

func (n *trieNode[V]) put(o *Owner, shift int, leaf *trieLeaf[V]) (_ *trieNode[V], added bool) {
	if shift >= hashBits {
		i := n.collision(leaf.key)
		n = n.own(o, 1)
		if i >= 0 {
			n.slots[i].leaf = leaf
			return n, false
		}
		n.slots = append(n.slots, trieSlot[V]{leaf: leaf})
		return n, true
	}
	i, taken := n.index(leaf.hash, shift)
	if !taken {
		n = n.own(o, 1)
		n.bitmap |= 1 << (leaf.hash >> shift & 31)
		n.slots = append(n.slots, trieSlot[V]{})
		copy(n.slots[i+1:], n.slots[i:])
		n.slots[i] = trieSlot[V]{leaf: leaf}
		return n, true
	}
	n = n.own(o, 0)
	slot := &n.slots[i]
	switch {
	case slot.node != nil:
		slot.node, added = slot.node.put(o, shift+pieceBits, leaf)
	case slot.leaf.hash == leaf.hash && slot.leaf.key == leaf.key:
		slot.leaf = leaf
	default: // two leaves in one place: put both one level down
		below := &trieNode[V]{owner: o}
		below, _ = below.put(o, shift+pieceBits, slot.leaf)
		below, added = below.put(o, shift+pieceBits, leaf)
		*slot = trieSlot[V]{node: below}
	}
	return n, added
}

// remove takes out an entry that is there.
func (n *trieNode[V]) remove(o *Owner, shift int, hash uint64, key string) *trieNode[V] {
	n = n.own(o, 0)
	var i int
	if shift >= hashBits {
		i = n.collision(key)
	} else {
		i, _ = n.index(hash, shift)
		if child := n.slots[i].node; child != nil {
			child = child.remove(o, shift+pieceBits, hash, key)
			n.slots[i].node = child
			// A lone leaf moves up, so that equal content has equal depth.
			if len(child.slots) == 1 && child.slots[0].leaf != nil {
				n.slots[i] = child.slots[0]
			}
			return n
		}
		n.bitmap &^= 1 << (hash >> shift & 31)
	}
	last := len(n.slots) - 1
	copy(n.slots[i:], n.slots[i+1:])
	n.slots[last] = trieSlot[V]{}
	n.slots = n.slots[:last]
	return n
}
