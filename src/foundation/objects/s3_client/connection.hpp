// Sends HTTP requests to the endpoint over one connection, through libcurl. Knows nothing of S3.
//
// A request's body is in memory (a part at most); an answer's body is read in pieces, and unread
// bytes wait in a buffer of kBufferBytes, then on the wire.
//
// Threads: confined to one at a time.
// Errors: unavailable (no connection, broken off, too slow), invalid (URL), exhausted (an answer
// past its limit).
#pragma once

#include <curl/curl.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::objects {

struct HttpRequest {
  std::string method;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view body;  // must live until the answer's head has arrived
};

struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers;  // lower-case names
  std::string get(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

struct HttpAnswer : HttpHead {
  std::string body;
};

struct ConnectionSettings {
  std::string ca_bundle;  // PEM file; "" = the system's
  std::string proxy;      // URL; "" = none, in spite of the environment
  Duration connect_limit = 10s;
  Duration idle_limit = 60s;  // without a byte within this time a request ends
};

class Connection {
 public:
  static constexpr size_t kBufferBytes = 512 << 10;  // a few round trips of 10 Gbit/s
  static constexpr size_t kHeadBytesMax = 64 << 10;
  static constexpr size_t kAnswerBytesMax = 32
                                            // of read_rest(): a page of 10,000 parts has some 4 MiB
                                            << 20;

  explicit Connection(const ConnectionSettings& settings);
  ~Connection();
  Connection(const Connection&) = delete;

  // Sends the request and waits for the answer's head.
  Result<HttpHead> start(const HttpRequest& request);
  // Reads the next bytes of the answer; 0 at its end.
  Result<size_t> read(std::span<char> buffer);
  // Ends a request, whether it was read to its end or not.
  void finish();
  // Reads the rest of the answer and finishes the request.
  Result<std::string> read_rest();
  // Calls start and read_rest.
  Result<HttpAnswer> perform(const HttpRequest& request);
  // Sleeps.
  void wait(Duration duration);

 private:
  static size_t on_header(char* bytes, size_t, size_t count, void* self);
  static size_t on_body(char* bytes, size_t, size_t count, void* self);
  static size_t on_upload(char* bytes, size_t, size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  // Makes one step of the transfer: as much as is possible now, or a wait.
  Result<void> step();

  const ConnectionSettings settings_;
  CURLM* const multi_;
  CURL* const easy_;
  curl_slist* header_lines_ = nullptr;
  bool under_way_ = false;  // easy_ is in multi_
  bool ended_ = false;
  CURLcode outcome_ = CURLE_OK;
  char error_text_[CURL_ERROR_SIZE] = "";

  HttpHead head_;
  size_t head_bytes_ = 0;
  bool head_is_there_ = false;
  std::string_view body_left_;
  std::string_view body_;
  std::string buffer_;
  size_t buffer_at_ = 0;
  bool paused_ = false;
};

}  // namespace trainyard::objects
