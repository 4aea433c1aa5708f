// Reads the body of an S3 endpoint's answer. If the connection breaks, reading continues at the
// same byte, if the object is unchanged.
//
// Threads: confined to one.
// Errors: those of the endpoint; unavailable (etag_differs): the object was replaced. After another
// error that is unavailable or denied, the next read continues at the same byte.
// Lifetime: the client outlives the reader.
#pragma once

#include <memory>

#include "objects/objects.hpp"
#include "objects/s3_client/requests.hpp"

namespace trainyard::objects {

// `what` is the request without its range. `range` is resolved (resolve_range()), and the body of
// `opened` has its bytes.
std::unique_ptr<Reader> read_s3(Client& client, S3Request what, Client::Opened opened,
                                ObjectInfo info, Range range);

}  // namespace trainyard::objects
