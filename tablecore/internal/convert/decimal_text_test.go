package convert

import (
	"math/big"
	"testing"
)

func TestDecimalText(t *testing.T) {
	for _, c := range []struct {
		unscaled int64
		scale    int32
		text     string
	}{{0, 0, "0"}, {0, 2, "0.00"}, {5, 0, "5"}, {-5, 1, "-0.5"}, {5, 3, "0.005"}, {-12345, 3, "-12.345"}, {12345, 5, "0.12345"}} {
		if got := decimalText(big.NewInt(c.unscaled), c.scale); got != c.text {
			t.Errorf("%d at scale %d is %s, want %s", c.unscaled, c.scale, got, c.text)
		}
		if v, ok := parseDecimalText(c.text, 40, c.scale); !ok || v.BigInt().Int64() != c.unscaled {
			t.Errorf("%s is read as %v, %v", c.text, v.BigInt(), ok)
		}
	}
	for _, text := range []string{"", "-", ".", "1", "1.", ".10", "01.10", "+1.10", "-0.00", "1.1", "1.100", "1,10", "1e2", " 1.10", "1.10 ", "1..10", "--1.10", "1.-10", "1000.00"} {
		if v, ok := parseDecimalText(text, 5, 2); ok {
			t.Errorf("%q is read as %v", text, v.BigInt())
		}
	}
}

func FuzzParseDecimalText(f *testing.F) {
	f.Add("-12.345", int32(40), int32(3))
	f.Add("0", int32(76), int32(0))
	f.Add("0.000", int32(39), int32(39))
	f.Fuzz(func(t *testing.T, text string, precision, scale int32) {
		if precision < 1 || precision > 76 || scale < 0 || scale > precision {
			return
		}
		if v, ok := parseDecimalText(text, precision, scale); ok && decimalText(v.BigInt(), scale) != text {
			t.Errorf("%q is written %q", text, decimalText(v.BigInt(), scale))
		}
	})
}
