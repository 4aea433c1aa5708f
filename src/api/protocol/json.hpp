// Reads and writes documents of the JSON protocols (1.0 and 1.1), one for each request and
// response. Timestamps are seconds since 1970, blobs are base64, NaN and the infinities are
// strings. Members that the shape does not have are ignored. A null member is absent.
//
// Threads: pure functions. Errors: invalid, with a text for the client (SerializationException).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Fills `structure`, a value of `shape`, from `text`. An empty text is an empty object. Limits:
// kDepthMax, kValuesMax.
Result<void> read_json(const shapes::Shape& shape, std::string_view text, void* structure);

// Appends `structure` as a document to `out`.
void write_json(const shapes::Shape& shape, const void* structure, std::string& out);

// Appends `text` as a JSON string with quotes. Replaces invalid UTF-8.
void append_json_string(std::string& out, std::string_view text);

}  // namespace trainyard::api
