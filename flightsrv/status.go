package flightsrv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"contrail/descriptors"
	"contrail/flightsrv/internal/wire"
	"contrail/tablecore/tableerr"
)

// tokenInternal is the token of everything that no other one describes.
const tokenInternal = "INTERNAL"

// codeOf maps every token of the table core to its status code.
var codeOf = map[tableerr.Token]codes.Code{
	tableerr.TokenInvalid:            codes.InvalidArgument,
	tableerr.TokenStreamIncomplete:   codes.InvalidArgument,
	tableerr.TokenSchemaMismatch:     codes.InvalidArgument,
	tableerr.TokenNullKey:            codes.InvalidArgument,
	tableerr.TokenTableNotFound:      codes.NotFound,
	tableerr.TokenVersionNotFound:    codes.NotFound,
	tableerr.TokenVersionExpired:     codes.NotFound,
	tableerr.TokenTableExists:        codes.AlreadyExists,
	tableerr.TokenRequestIDReused:    codes.AlreadyExists,
	tableerr.TokenIntervalOverlap:    codes.FailedPrecondition,
	tableerr.TokenDuplicateSourceKey: codes.InvalidArgument,
	tableerr.TokenUnmatchedSourceKey: codes.InvalidArgument,
	tableerr.TokenAmbiguousTargetKey: codes.InvalidArgument,
	tableerr.TokenDuplicateInterval:  codes.FailedPrecondition,
	tableerr.TokenFormatUnreadable:   codes.FailedPrecondition,
	tableerr.TokenFormatUnwritable:   codes.FailedPrecondition,
	tableerr.TokenUnsupported:        codes.FailedPrecondition,
	tableerr.TokenFileMissing:        codes.FailedPrecondition,
	tableerr.TokenNoGranularity:      codes.FailedPrecondition,
	tableerr.TokenUniquenessViolated: codes.FailedPrecondition,
	tableerr.TokenNotAppendOnly:      codes.FailedPrecondition,
	tableerr.TokenClockBehind:        codes.FailedPrecondition,
	tableerr.TokenVacuumIncomplete:   codes.Unavailable,
	tableerr.TokenVersionConflict:    codes.Aborted,
	tableerr.TokenCommitUnknown:      codes.Unknown,
	tableerr.TokenMessageTooLarge:    codes.ResourceExhausted,
	tableerr.TokenTooManyStreams:     codes.ResourceExhausted,
	tableerr.TokenQueueTimeout:       codes.ResourceExhausted,
	tableerr.TokenStorageFull:        codes.ResourceExhausted,
	tableerr.TokenTimedOut:           codes.DeadlineExceeded,
	tableerr.TokenStoreUnavailable:   codes.Unavailable,
	tableerr.TokenDraining:           codes.Unavailable,
	tableerr.TokenCorrupt:            codes.DataLoss,
}

// CodeOf returns the status code of a token of the protocol, if it has one.
func CodeOf(token string) (codes.Code, bool) {
	if token == tokenInternal {
		return codes.Internal, true
	}
	code, ok := codeOf[tableerr.Token(token)]
	return code, ok
}

// arrowStatusOf is arrow::StatusCode (arrow/status.h) for a status code, what
// Arrow's own clients make an exception of.
var arrowStatusOf = map[codes.Code]int{
	codes.InvalidArgument:    4,  // Invalid
	codes.FailedPrecondition: 4,  // Invalid
	codes.NotFound:           2,  // KeyError
	codes.AlreadyExists:      45, // AlreadyExists
	codes.Aborted:            9,  // UnknownError
	codes.Unknown:            9,  // UnknownError
	codes.Internal:           9,  // UnknownError
	codes.ResourceExhausted:  6,  // CapacityError
	codes.DeadlineExceeded:   5,  // IOError
	codes.Unavailable:        5,  // IOError
	codes.DataLoss:           5,  // IOError
}

// Trailers of a failed call.
const (
	trailerToken        = "x-contrail-error"
	trailerArrowStatus  = "x-arrow-status"
	trailerArrowMessage = "x-arrow-status-message-bin"
	// trailerDetail carries JSON in place of a google.rpc.Status: pyarrow hands
	// its bytes out as extra_info, and gRPC clients ignore what they cannot
	// parse.
	trailerDetail = "grpc-status-details-bin"
)

// failure is an error as a client sees it.
type failure struct {
	code     codes.Code
	token    string // "" for what the transport or the caller's context ended
	message  string
	detail   []byte
	incident string // of an INTERNAL error, whose text stays in the log
}

// failureOf maps an error to what the client sees.
func failureOf(err error) failure {
	var typed tableerr.Error
	if errors.As(err, &typed) {
		if code, ok := codeOf[typed.Token()]; ok {
			message, detail := descriptors.FormatError(typed)
			return failure{code: code, token: string(typed.Token()), message: message, detail: detail}
		}
	}
	if s, ok := status.FromError(err); ok && fromTransport(s.Code()) {
		return failure{code: s.Code(), message: s.Message()}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return failure{code: codes.Canceled, message: "the call was cancelled"}
	case errors.Is(err, context.DeadlineExceeded):
		return failure{code: codes.DeadlineExceeded, message: "the call's deadline has passed"}
	}
	return internalFailure()
}

// fromTransport tells the codes that gRPC itself ends a stream with: the client
// is gone, or asked for what this server does not implement.
func fromTransport(c codes.Code) bool {
	return c == codes.Canceled || c == codes.DeadlineExceeded || c == codes.Unavailable || c == codes.Unimplemented
}

// internalFailure hides an error behind an id under which the log has it.
func internalFailure() failure {
	var id [8]byte
	rand.Read(id[:]) //nolint:errcheck // never fails
	incident := hex.EncodeToString(id[:])
	message, detail := descriptors.Format(tokenInternal, "the server failed; its log says why under this incident",
		[]tableerr.Field{{Key: "incident", Value: incident}})
	return failure{code: codes.Internal, token: tokenInternal, message: message, detail: detail, incident: incident}
}

// trailers returns the trailers of the failed call.
func (f failure) trailers() metadata.MD {
	if f.token == "" {
		return nil
	}
	return metadata.Pairs(
		trailerToken, f.token,
		trailerArrowStatus, strconv.Itoa(arrowStatusOf[f.code]),
		trailerArrowMessage, f.message,
		trailerDetail, string(f.detail),
	)
}

// err returns the failure as the error a gRPC handler ends with.
func (f failure) err() error { return status.Error(f.code, f.message) }

// serious tells failures that an operator should look at.
func (f failure) serious() bool {
	return f.code == codes.Internal || f.code == codes.DataLoss || f.code == codes.Unknown
}

// receiveError gives an error of receiving a message its type: but for the end
// and what is wrong with a message, it means that the client cancelled or is
// gone.
func receiveError(err error, limit int64) error {
	if err == io.EOF || tableerr.TokenOf(err) != "" {
		return err
	}
	if typed := messageError(err, limit); typed != err {
		return typed
	}
	return fmt.Errorf("the stream broke: %w: %w", context.Canceled, err)
}

// messageError gives gRPC's refusal of a message over the limit its type, and
// returns every other error as it is.
func messageError(err error, limit int64) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() != codes.ResourceExhausted {
		return err
	}
	var size, most int64
	if _, err := fmt.Sscanf(s.Message(), "grpc: received message larger than max (%d vs. %d)", &size, &most); err != nil {
		size = 0
	}
	return wire.TooLarge(limit, size)
}
