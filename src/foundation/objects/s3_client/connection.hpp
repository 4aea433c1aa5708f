// Sends HTTP requests to an endpoint over one connection, through libcurl. Independent of S3.
//
// The body of a request is in memory (at most one part). The body of an answer is read in pieces;
// unread bytes are buffered up to kBufferBytes, then the transfer pauses.
//
// Threads: confined to one at a time.
// Errors: unavailable (the connection failed, broke or timed out), invalid (URL), exhausted (the
// answer exceeds its limit).
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
  std::string_view body;  // must outlive start()
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
  std::string proxy;      // URL; "": none, even if the environment names one
  Duration connect_limit = 10s;
  Duration idle_limit = 60s;  // a request that transfers no byte within this time fails
};

class Connection {
 public:
  static constexpr size_t kBufferBytes = 512 << 10;  // a few round trips at 10 Gbit/s
  static constexpr size_t kHeadBytesMax = 64 << 10;
  // limit of read_rest(); a page of 10,000 parts has about 4 MiB
  static constexpr size_t kAnswerBytesMax = 32 << 20;

  explicit Connection(const ConnectionSettings& settings);
  ~Connection();
  Connection(const Connection&) = delete;

  // Sends the request and waits for the header of the answer.
  Result<HttpHead> start(const HttpRequest& request);
  // Reads the next bytes of the answer; returns 0 at its end.
  Result<size_t> read(std::span<char> buffer);
  // Ends the request, even if its answer was not read to the end.
  void finish();
  // Reads the rest of the answer and finishes the request.
  Result<std::string> read_rest();
  // Calls start() and read_rest().
  Result<HttpAnswer> perform(const HttpRequest& request);
  // Waits, in libcurl's poll.
  void wait(Duration duration);

 private:
  static size_t on_header(char* bytes, size_t, size_t count, void* self);
  static size_t on_body(char* bytes, size_t, size_t count, void* self);
  static size_t on_upload(char* bytes, size_t, size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  // Transfers as many bytes as possible without blocking; if there are none, waits.
  Result<void> step();

  const ConnectionSettings settings_;
  CURLM* const multi_;
  CURL* const easy_;
  curl_slist* header_lines_ = nullptr;
  bool is_active_ = false;  // easy_ was added to multi_
  bool ended_ = false;
  CURLcode outcome_ = CURLE_OK;
  char error_text_[CURL_ERROR_SIZE] = "";

  HttpHead head_;
  size_t head_bytes_ = 0;
  bool has_head_ = false;
  std::string_view body_left_;
  std::string_view body_;
  std::string buffer_;
  size_t buffer_at_ = 0;
  bool paused_ = false;
};

}  // namespace trainyard::objects
