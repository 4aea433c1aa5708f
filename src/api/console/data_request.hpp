// Turns a page's request for buckets and objects into a signed request of S3, on behalf of a
// session's principal, and the response into one that a browser shows as text or as a picture, and
// never runs.
//
//   GET /console/objects?what=buckets                  ListBuckets
//   GET /console/objects?what=objects&bucket=B         ListObjectsV2: &prefix=P, &token=T; one level
//   GET /console/objects?what=text&bucket=B&key=K      the first bytes of the object, as plain text
//   GET /console/objects?what=image&bucket=B&key=K     the object, if named as a picture
//   GET /console/objects?what=download&bucket=B&key=K  the object, which the browser saves
//
// Lists and errors are S3's XML. Parameters that are too long or have control characters, and
// unknown values of `what`, are rejected.
//
// Threads: pure functions; `random` is callable from anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "console/session_table.hpp"
#include "net/http_server.hpp"

namespace trainyard::api::console {

enum class DataView { buckets, objects, text, image, download };

struct DataRequest {
  DataView view = DataView::buckets;
  std::string region;  // "" = the session's
  std::string bucket, prefix, token, key;
};

inline constexpr uint64_t kTextBytesMax = 256 << 10;  // of a preview; more than people read
inline constexpr uint64_t kImageBytesMax = 16 << 20;  // of a picture
inline constexpr int64_t kListedObjectsMax = 200;     // one page of a list

// Errors: invalid, naming the parameter.
Result<DataRequest> read_data_request(const net::RequestHead& head);

// Returns the media type of a picture that browsers show and that has no scripts, by its name;
// nothing for other names, SVG included.
std::optional<std::string_view> image_type_of(std::string_view key);

// Errors: exhausted (the principal's description is too long), invalid (the region).
Result<net::RequestHead> sign_data_request(const DataRequest& request, const SignedIn& who,
                                           const net::RequestHead& from,
                                           const std::string& sealing_secret, Instant now,
                                           Random& random);

// Returns the headers of the response to the page: its type, the size of the whole object, and the
// content policy. The object's own headers are left out.
net::Headers data_headers(const DataRequest& request, int status, const net::Headers& from);

}  // namespace trainyard::api::console
