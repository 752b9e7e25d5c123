// Package wire stands between gRPC's streams of FlightData and record batches.
//
// Receiving: a [Put] reads the stream of one DoPut. It never trusts a length
// that the client claims: every IPC message is verified with bounds-checked
// code before arrow-go's reader sees it, what decompression may allocate is
// capped per message, per stream and over all streams, every decoded array is
// validated in full, and a panic of the reader is an error. Messages without a
// data header never reach the reader, an announced end is checked before the
// end of the stream is reported, and a silent client is given up on.
//
// Sending: a [Stream] writes record batches on one canonical schema. The
// schema goes out on request, before there is any batch; messages are measured
// and cut so that none exceeds the limit, and none goes out without a data
// header. [Watch] gives up on a client that does not read.
//
// The package knows nothing of gRPC's status codes: errors are tableerr types,
// or what the transport returned.
package wire
