// Interprets the answers of an S3 endpoint: the Kind of errors, whether a request can be retried,
// and the properties of an object in a header.
//
// Threads: pure.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/xml.hpp"
#include "objects/objects.hpp"
#include "objects/s3_client/connection.hpp"

namespace trainyard::objects {

struct Refusal {
  Error error;
  bool nothing_changed = false;  // certain: any request can be retried
  bool is_temporary = false;     // a repeatable request can be retried
};

// Interprets an unsuccessful answer to the request `doing`: "PUT s3://bucket/key".
Refusal refusal_of(const HttpAnswer& answer, const std::string& doing);

// Decodes the range of a partial answer (Content-Range). Errors: corrupt.
Result<Range> content_range_of(const HttpHead& head);

// Decodes the headers of the answer to a get or head. Errors: corrupt.
Result<ObjectInfo> object_info_of(const HttpHead& head, const std::string& key);

// Decodes a whole number within least .. most, in S3's form. Errors: corrupt, with the name `what`
// of the value.
Result<uint64_t> number_of(const std::string& text, const char* what, uint64_t least,
                           uint64_t most);
// Decodes the length of an object or a part: 0 .. kObjectBytesMax. Errors: corrupt.
Result<uint64_t> length_of(const std::string& text);
// Decodes a part number: 1 .. kPartsMax. Errors: corrupt.
Result<uint32_t> part_number_of(const std::string& text);
Result<Instant> instant_of(const std::string& text);
std::string without_quotes(std::string etag);

}  // namespace trainyard::objects
