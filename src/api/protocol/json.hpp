// Reads and writes the JSON protocols (1.0 and 1.1): one document a request, one a reply. Timestamps are seconds since 1970,
// blobs base64, NaN and the infinities strings. Members that the shape does not have are ignored; null is the same as
// absent.
//
// Threads: pure functions. Errors: invalid, with a text for the client (SerializationException).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Fills `structure`, which is of `shape`, from `text`. An empty text is an empty object.
// Limits: kDepthMax, kValuesMax.
Result<void> read_json(const shapes::Shape& shape, std::string_view text, void* structure);

// Appends the document of `structure` to `out`.
void write_json(const shapes::Shape& shape, const void* structure, std::string& out);

// `text` as a JSON string with its quotes; ill-formed UTF-8 is replaced.
void append_json_string(std::string& out, std::string_view text);

}  // namespace trainyard::api
