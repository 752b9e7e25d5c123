package deltalog

import (
	"hash/maphash"
	"iter"
	"math/bits"
)

// pmap is a persistent map from strings: an edit gives a new map that shares
// all but the touched path with the old one (a hash array mapped trie, Bagwell
// 2001). Reading is safe from many goroutines. The zero value is empty.
//
// Edits carry an owner. Nodes made under an owner are changed in place by later
// edits under the same one, so that a batch of edits copies each node once; the
// maps handed out before a batch never see it, since their nodes have other
// owners.
type pmap[V any] struct {
	root *pnode[V]
	n    int
}

// owner is the identity of one batch of edits. It has a size so that two
// owners never share an address.
type owner struct{ _ byte }

// pnode holds up to 32 slots, one for each 5-bit piece of the hash that occurs,
// in the order of the pieces. Below the last piece of the hash a node holds
// keys with equal hashes, in no order and without a bitmap.
type pnode[V any] struct {
	owner  *owner
	bitmap uint32
	slots  []pslot[V]
}

// pslot is either a node or a leaf.
type pslot[V any] struct {
	node *pnode[V]
	leaf *pleaf[V]
}

type pleaf[V any] struct {
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

func (m pmap[V]) len() int { return m.n }

func (m pmap[V]) get(key string) (V, bool) {
	if leaf := m.find(maphash.String(hashSeed, key), key); leaf != nil {
		return leaf.value, true
	}
	var zero V
	return zero, false
}

func (m pmap[V]) find(hash uint64, key string) *pleaf[V] {
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

// all yields every entry, in an order that differs between processes.
func (m pmap[V]) all() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.root != nil {
			m.root.walk(yield)
		}
	}
}

func (n *pnode[V]) walk(yield func(string, V) bool) bool {
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

// set puts an entry. The key's bytes stay referenced.
func (m *pmap[V]) set(o *owner, key string, value V) {
	m.put(o, &pleaf[V]{maphash.String(hashSeed, key), key, value})
}

func (m *pmap[V]) put(o *owner, leaf *pleaf[V]) {
	if m.root == nil {
		m.root = &pnode[V]{owner: o}
	}
	var added bool
	m.root, added = m.root.put(o, 0, leaf)
	if added {
		m.n++
	}
}

// remove takes an entry out, if there is one.
func (m *pmap[V]) remove(o *owner, key string) {
	m.removeHash(o, maphash.String(hashSeed, key), key)
}

func (m *pmap[V]) removeHash(o *owner, hash uint64, key string) {
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
func (n *pnode[V]) index(hash uint64, shift int) (int, bool) {
	bit := uint32(1) << (hash >> shift & 31)
	return bits.OnesCount32(n.bitmap & (bit - 1)), n.bitmap&bit != 0
}

func (n *pnode[V]) collision(key string) int {
	for i, slot := range n.slots {
		if slot.leaf.key == key {
			return i
		}
	}
	return -1
}

// own returns the node itself if the owner made it, else a copy with room for
// extra slots.
func (n *pnode[V]) own(o *owner, extra int) *pnode[V] {
	if n.owner == o {
		return n
	}
	slots := make([]pslot[V], len(n.slots), len(n.slots)+extra)
	copy(slots, n.slots)
	return &pnode[V]{owner: o, bitmap: n.bitmap, slots: slots}
}

func (n *pnode[V]) put(o *owner, shift int, leaf *pleaf[V]) (_ *pnode[V], added bool) {
	if shift >= hashBits {
		i := n.collision(leaf.key)
		n = n.own(o, 1)
		if i >= 0 {
			n.slots[i].leaf = leaf
			return n, false
		}
		n.slots = append(n.slots, pslot[V]{leaf: leaf})
		return n, true
	}
	i, taken := n.index(leaf.hash, shift)
	if !taken {
		n = n.own(o, 1)
		n.bitmap |= 1 << (leaf.hash >> shift & 31)
		n.slots = append(n.slots, pslot[V]{})
		copy(n.slots[i+1:], n.slots[i:])
		n.slots[i] = pslot[V]{leaf: leaf}
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
		below := &pnode[V]{owner: o}
		below, _ = below.put(o, shift+pieceBits, slot.leaf)
		below, added = below.put(o, shift+pieceBits, leaf)
		*slot = pslot[V]{node: below}
	}
	return n, added
}

// remove takes out an entry that is there.
func (n *pnode[V]) remove(o *owner, shift int, hash uint64, key string) *pnode[V] {
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
	n.slots[last] = pslot[V]{}
	n.slots = n.slots[:last]
	return n
}
