// Wraps libcurl: one request with its whole answer, or a connection with bytes in both directions.
//
// Threads: confined to one at a time. Errors: unavailable (no connection, broken off, too slow),
// denied (the server's certificate), invalid (URL), exhausted (an answer past kAnswerBytesMax).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "client/client.hpp"

namespace trainyard::client {

// a page of 10,000 log lines has some megabytes
inline constexpr size_t kAnswerBytesMax = 64 << 20;

struct CurlLimits {
  std::string ca_bundle;
  Duration connect_limit{};
  Duration answer_limit{};
  // PEM as text: the authority of the server's certificate, instead of `ca_bundle`, and this
  // client's own certificate with its key; "": none.
  std::string ca = {}, certificate = {}, key = {};
};

class Curl {
 public:
  explicit Curl(CurlLimits limits);
  ~Curl();
  Curl(const Curl&) = delete;
  Result<Answer> post(const std::string& url,
                      const std::vector<std::pair<std::string, std::string>>& headers,
                      const std::string& body);
  // With any method; GET has no body.
  Result<Answer> send(const std::string& method, const std::string& url,
                      const std::vector<std::pair<std::string, std::string>>& headers,
                      const std::string& body);

 private:
  const CurlLimits limits_;
  void* const handle_;  // CURL
};

// Sets the options of every request. `handle` is a CURL, `explanation` holds CURL_ERROR_SIZE bytes
// and outlives its use.
void prepare(void* handle, const std::string& url, const CurlLimits& limits, char* explanation);
// Returns a handle to prepare; nullptr when libcurl cannot start. The caller passes it to
// curl_easy_cleanup.
void* new_handle();
// Converts an error of libcurl into the kind by which the caller can act.
Error error_of_curl(int code, const char* explanation);

// Connects to the URL's host (with TLS for https) and sends nothing.
Result<std::unique_ptr<Connection>> connect_raw(const std::string& url, const CurlLimits& limits);

// Sleeps, with curl's poll, since code above the module os may not sleep.
void rest(Duration duration);

}  // namespace trainyard::client
