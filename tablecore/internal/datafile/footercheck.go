package datafile

import (
	"fmt"
	"math"
)

const (
	// maxSchemaDepth bounds the nesting of a file's schema. A column 32 deep,
	// the most a table may have, takes three levels for each list.
	maxSchemaDepth = 128
	// minStructBytes is less than Parquet's smallest structure takes on the
	// average; more structures than bytes allow are a bomb.
	minStructBytes = 4
)

// checkFooter checks the shape of serialized file metadata before arrow-go
// parses it: that it is whole, that what it claims to hold fits in its bytes,
// that its schema is not so deep that walking it would exhaust the stack, and
// that it matches its seal, if it has one.
func checkFooter(raw []byte) (sealed bool, err error) {
	r := thriftReader{b: raw}
	var schemaErr error
	r.structure(0, func(id int, typ byte) bool {
		if id != 2 || typ != thriftList {
			return r.seal(id, typ)
		}
		n, elem := r.list()
		if elem != thriftStruct {
			r.skipElements(n, elem, 1)
			return true
		}
		schemaErr = checkSchema(&r, n)
		return true
	})
	switch {
	case r.err != nil:
		err = fmt.Errorf("its footer cannot be parsed: %w", r.err)
	case schemaErr != nil:
		err = schemaErr
	case r.structs > 64+len(raw)/minStructBytes:
		err = fmt.Errorf("its footer claims %d structures in %d bytes", r.structs, len(raw))
	}
	return r.sealed, err
}

// checkSchema walks the flattened schema tree: each element names its number
// of children, which follow it.
func checkSchema(r *thriftReader, n int) error {
	var open []int64 // children still to come, per open group
	for range n {
		children, err := schemaChildren(r)
		if err != nil {
			return err
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
		if len(open) > 0 {
			open[len(open)-1]--
		}
		if children > 0 {
			open = append(open, children)
		}
		if len(open) > maxSchemaDepth {
			return fmt.Errorf("its schema is nested deeper than %d", maxSchemaDepth)
		}
	}
	return nil
}

func schemaChildren(r *thriftReader) (int64, error) {
	children := int64(0)
	r.structure(1, func(id int, typ byte) bool {
		if id != 5 || typ != thriftI32 {
			return false
		}
		children = r.int()
		return true
	})
	if children < 0 || children > math.MaxInt32 {
		return 0, fmt.Errorf("its schema has a group of %d children", children)
	}
	return children, r.err
}
