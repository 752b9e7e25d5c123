package rowfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"contrail/tablecore/tabledef"
)

// Arrow's readers trust the numbers in a schema and make room for as many fields
// as it claims to have, so schemas are checked before.

var errCutOff = errors.New("it is cut off or damaged")

// checkedStream checks the schema that a stream begins with and returns the
// stream from its beginning.
func checkedStream(r io.Reader) (io.Reader, error) {
	head := make([]byte, len(streamMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, errCutOff
	}
	length := binary.LittleEndian.Uint32(head[len(streamMagic):])
	var schema bytes.Buffer // grows with what there is, whatever the length says
	if _, err := io.CopyN(&schema, r, int64(length)); err != nil {
		return nil, errCutOff
	}
	if err := tabledef.CheckSchemaMessage(schema.Bytes()); err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(append(head, schema.Bytes()...)), r), nil
}

// checkFooter checks the schema in a file's footer, which lies before its length
// and the mark at the end.
func checkFooter(r Source) error {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const end = 4 + int64(len(arrowMagic))
	if size < end {
		return errCutOff
	}
	var length [4]byte
	if _, err := r.ReadAt(length[:], size-end); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(length[:]))
	if n > size-end {
		return errCutOff
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-end-n); err != nil {
		return err
	}
	return tabledef.CheckFooter(footer)
}
