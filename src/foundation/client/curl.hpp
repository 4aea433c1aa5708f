// Wraps libcurl: sends a request and reads its whole answer or receives it in pieces, or opens a
// connection that transfers bytes in both directions.
//
// Threads: confined to one at a time. Errors: unavailable (the connection failed, broke or timed
// out), denied (the server's certificate), invalid (URL), exhausted (an answer longer than
// kAnswerBytesMax), cancelled (interrupted).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "client/client.hpp"

namespace trainyard::client {

// a page of 10,000 log lines has a few megabytes
inline constexpr size_t kAnswerBytesMax = 64 << 20;

struct CurlLimits {
  std::string ca_bundle;
  Duration connect_limit{};
  Duration answer_limit{};
  // PEM texts: the authority that signed the server's certificate (replaces `ca_bundle`), and the
  // certificate of this client with its key. "": not set.
  std::string ca = {}, certificate = {}, key = {};
};

// How an answer is received while it arrives.
struct Streaming {
  // Receives the body of an answer of status 2xx: "" when the answer begins, then each piece.
  // Returns false to end the request. Empty: the body is read whole.
  std::function<bool(std::string_view piece)> receive = {};
  Duration answer_limit{};  // for the whole answer; a peer that has vanished is noticed earlier
  // The request ends with `cancelled` when this descriptor is readable; -1: none.
  int interrupt_descriptor = -1;
};

class Curl {
 public:
  explicit Curl(CurlLimits limits);
  ~Curl();
  Curl(const Curl&) = delete;
  Result<Answer> post(const std::string& url,
                      const std::vector<std::pair<std::string, std::string>>& headers,
                      const std::string& body);
  // Sends a request with any method. `body` is ignored for GET.
  Result<Answer> send(const std::string& method, const std::string& url,
                      const std::vector<std::pair<std::string, std::string>>& headers,
                      const std::string& body);
  // Sends a request as send() does. What `receive` has received is not in the result's body; an
  // answer of another status is.
  Result<Answer> stream(const std::string& method, const std::string& url,
                        const std::vector<std::pair<std::string, std::string>>& headers,
                        const std::string& body, const Streaming& streaming);

 private:
  const CurlLimits limits_;
  void* const handle_;     // CURL
  void* multi_ = nullptr;  // CURLM, with the connections of stream(); made by its first call
};

// Sets the options that every request needs. `handle` is a CURL. `explanation` has CURL_ERROR_SIZE
// bytes, which libcurl fills with the text of an error; it outlives the use of the handle.
void prepare(void* handle, const std::string& url, const CurlLimits& limits, char* explanation);
// Returns a new CURL handle; nullptr if libcurl cannot start. The caller passes it to
// curl_easy_cleanup.
void* new_handle();
// Converts an error code of libcurl into an Error of the kind on which a caller can act.
Error error_of_curl(int code, const char* explanation);

// Connects to the host of the URL, with TLS for https. Sends nothing.
Result<std::unique_ptr<Connection>> connect_raw(const std::string& url, const CurlLimits& limits);

// Waits in curl's poll, because code above the module os may not call sleep functions.
void pause_for(Duration duration);

}  // namespace trainyard::client
