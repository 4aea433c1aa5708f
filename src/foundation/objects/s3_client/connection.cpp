#include "objects/s3_client/connection.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/check.hpp"
#include "base/text.hpp"
#include "transfer/curl_library.hpp"

namespace trainyard::objects {
namespace {

using transfer::curl;

}  // namespace

Connection::Connection(const ConnectionSettings& settings)
    : settings_(settings), multi_(curl().curl_multi_init()), easy_(curl().curl_easy_init()) {
  CHECK(curl().started == CURLE_OK && multi_ && easy_, "libcurl has memory");
}

Connection::~Connection() {
  finish();
  curl().curl_easy_cleanup(easy_);
  curl().curl_multi_cleanup(multi_);
}

size_t Connection::on_header(char* bytes, size_t, size_t count, void* self) {
  Connection& us = *static_cast<Connection*>(self);
  us.head_bytes_ += count;
  if (us.head_bytes_ > kHeadBytesMax) return 0;
  const std::string_view line = trim(std::string_view(bytes, count));
  if (line.starts_with("HTTP/")) {  // removes the headers of "100 Continue", if there were any
    us.head_ = {};
    const size_t blank = line.find(' ');
    if (blank != line.npos)
      std::from_chars(line.data() + blank + 1, line.data() + line.size(), us.head_.status);
  } else if (line.empty()) {
    us.has_head_ = us.head_.status >= 200;
  } else if (!us.has_head_) {
    const size_t colon = line.find(':');
    if (colon != line.npos)
      us.head_.headers[to_lower(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
  }
  return count;
}

size_t Connection::on_body(char* bytes, size_t, size_t count, void* self) {
  Connection& us = *static_cast<Connection*>(self);
  if (us.buffer_.size() - us.buffer_at_ >= kBufferBytes) {
    us.paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  if (us.buffer_at_ == us.buffer_.size()) {
    us.buffer_.clear();
    us.buffer_at_ = 0;
  }
  us.buffer_.append(bytes, count);
  return count;
}

size_t Connection::on_upload(char* bytes, size_t, size_t count, void* self) {
  Connection& us = *static_cast<Connection*>(self);
  const size_t taken = std::min(count, us.body_left_.size());
  std::memcpy(bytes, us.body_left_.data(), taken);
  us.body_left_.remove_prefix(taken);
  return taken;
}

// libcurl sends a body again when a reused connection turns out to be closed.
int Connection::on_seek(void* self, curl_off_t offset, int origin) {
  Connection& us = *static_cast<Connection*>(self);
  if (origin != SEEK_SET || offset < 0 || size_t(offset) > us.body_.size())
    return CURL_SEEKFUNC_FAIL;
  us.body_left_ = us.body_.substr(size_t(offset));
  return CURL_SEEKFUNC_OK;
}

Result<HttpHead> Connection::start(const HttpRequest& request) {
  finish();
  head_ = {};
  head_bytes_ = 0;
  has_head_ = ended_ = paused_ = false;
  body_ = body_left_ = request.body;
  buffer_.clear();
  buffer_at_ = 0;
  error_text_[0] = '\0';

  curl().curl_easy_reset(easy_);
  for (const auto& [name, value] : request.headers)
    // In libcurl's lists "name:" removes a header; "name;" sends one without a value.
    header_lines_ = curl().curl_slist_append(
        header_lines_, (value.empty() ? name + ";" : name + ": " + value).c_str());
  // Disables "100 Continue": a body is at most one part, and is sent again if it was rejected.
  header_lines_ = curl().curl_slist_append(header_lines_, "Expect:");
  const auto set = [this](auto option, auto value) {
    curl().curl_easy_setopt(easy_, option, value);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_HTTPHEADER, header_lines_);
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);  // keys may contain ".."
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROXY, settings_.proxy.c_str());
  set(CURLOPT_NETRC, long(CURL_NETRC_IGNORED));
  set(CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_ERRORBUFFER, error_text_);
  set(CURLOPT_CONNECTTIMEOUT_MS, long(settings_.connect_limit.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, std::max(1L, long(settings_.idle_limit.count() / 1000)));
  set(CURLOPT_BUFFERSIZE, long(128 << 10));
  set(CURLOPT_HEADERFUNCTION, &Connection::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Connection::on_body);
  set(CURLOPT_WRITEDATA, this);
  if (!settings_.ca_bundle.empty()) set(CURLOPT_CAINFO, settings_.ca_bundle.c_str());
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, curl_off_t(request.body.size()));
    set(CURLOPT_READFUNCTION, &Connection::on_upload);
    set(CURLOPT_READDATA, this);
    set(CURLOPT_SEEKFUNCTION, &Connection::on_seek);
    set(CURLOPT_SEEKDATA, this);
    set(CURLOPT_UPLOAD_BUFFERSIZE, long(128 << 10));
  }
  if (curl().curl_multi_add_handle(multi_, easy_) != CURLM_OK)
    return internal("sending a request: libcurl rejected it");
  is_active_ = true;
  while (!has_head_ && !ended_) TRY(step());
  if (!has_head_) return unavailable("waiting for the answer: the connection was closed");
  return head_;
}

Result<void> Connection::step() {
  int running = 0;
  if (curl().curl_multi_perform(multi_, &running) != CURLM_OK)
    return internal("transferring data: libcurl failed");
  int left = 0;
  while (const CURLMsg* const message = curl().curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    ended_ = true;
    outcome_ = message->data.result;
    if (outcome_ == CURLE_OK) return ok();
    if (head_bytes_ > kHeadBytesMax)
      return exhausted("the header of the answer is larger than " + human_bytes(kHeadBytesMax));
    const std::string explanation =
        error_text_[0] ? error_text_ : curl().curl_easy_strerror(outcome_);
    if (outcome_ == CURLE_URL_MALFORMAT || outcome_ == CURLE_UNSUPPORTED_PROTOCOL)
      return invalid(explanation);
    if (outcome_ == CURLE_SSL_CACERT_BADFILE)
      return invalid("reading the CA bundle " + settings_.ca_bundle + ": " + explanation);
    if (outcome_ == CURLE_PEER_FAILED_VERIFICATION) return denied(explanation);
    return unavailable(explanation);
  }
  if (running > 0 && buffer_at_ == buffer_.size() && !(has_head_ && paused_))
    curl().curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
  return ok();
}

Result<size_t> Connection::read(std::span<char> buffer) {
  if (buffer.empty()) return size_t(0);
  while (buffer_at_ == buffer_.size()) {
    if (paused_) {
      paused_ = false;
      // libcurl now calls on_body with the bytes that it has buffered
      curl().curl_easy_pause(easy_, CURLPAUSE_CONT);
      continue;
    }
    if (ended_) return size_t(0);
    TRY(step());
  }
  const size_t bytes = std::min(buffer.size(), buffer_.size() - buffer_at_);
  std::memcpy(buffer.data(), buffer_.data() + buffer_at_, bytes);
  buffer_at_ += bytes;
  return bytes;
}

void Connection::finish() {
  if (is_active_) curl().curl_multi_remove_handle(multi_, easy_);
  is_active_ = false;
  curl().curl_slist_free_all(header_lines_);
  header_lines_ = nullptr;
}

Result<HttpAnswer> Connection::perform(const HttpRequest& request) {
  HttpAnswer answer;
  static_cast<HttpHead&>(answer) = TRY(start(request));
  answer.body = TRY(read_rest());
  return answer;
}

Result<std::string> Connection::read_rest() {
  std::string rest;
  std::vector<char> buffer(64 << 10);
  for (;;) {
    const size_t bytes = TRY(read(buffer));
    if (bytes == 0) break;
    if (rest.size() + bytes > kAnswerBytesMax)
      return exhausted("the answer is larger than " + human_bytes(kAnswerBytesMax));
    rest.append(buffer.data(), bytes);
  }
  finish();
  return rest;
}

void Connection::wait(Duration duration) {
  curl().curl_multi_poll(multi_, nullptr, 0, int(duration.count()), nullptr);
}

}  // namespace trainyard::objects
