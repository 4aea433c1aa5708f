// What an S3 endpoint's answers mean: which errors may be tried again, which Kind they are, what a head tells
// of an object.
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
  bool not_done = false;  // surely nothing was changed: may be tried again, whatever it was
  bool may_pass = false;  // may be tried again if that is harmless
};

// Of an answer that is no success. `doing`: "PUT s3://bucket/key".
Refusal refusal_of(const HttpAnswer& answer, const std::string& doing);

// Headers of a get or head. Errors: corrupt.
Result<ObjectInfo> object_info_of(const HttpHead& head, const std::string& key);

// A whole number within least .. most, as S3 writes it. Errors: corrupt, naming what it is.
Result<uint64_t> number_of(const std::string& text, const char* what, uint64_t least, uint64_t most);
// The length of an object or a part: 0 .. kObjectBytesMax. Errors: corrupt.
Result<uint64_t> length_of(const std::string& text);
// 1 .. kPartsMax. Errors: corrupt.
Result<uint32_t> part_number_of(const std::string& text);
Result<Instant> instant_of(const std::string& text);
std::string without_quotes(std::string etag);

}  // namespace trainyard::objects
