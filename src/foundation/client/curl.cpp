#include "client/curl.hpp"

#include <poll.h>

#include <algorithm>
#include <optional>

#include "transfer/curl_library.hpp"

namespace trainyard::client {
namespace {

using transfer::curl;

constexpr size_t kReadBytes = 64 << 10;
// a server that accepts no bytes within this time is unreachable
constexpr int kWriteWaitMilliseconds = 60'000;
// The kernel notices within 15 s and nine probes, a minute, that the peer of an idle stream is
// gone.
constexpr long kProbeAfterSeconds = 15, kProbeIntervalSeconds = 5;
// libcurl wakes earlier for its own timers.
constexpr int kStreamPollMilliseconds = 60'000;

size_t append_body(char* bytes, size_t, size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + count > kAnswerBytesMax) return 0;
  body.append(bytes, count);
  return count;
}

// Adds to an error about a certificate how the trusted authority is set.
Error with_authority_hint(Error error, const CurlLimits& limits) {
  if (error.kind == Kind::denied && limits.ca.empty())
    error.message += " (AWS_CA_BUNDLE names the trusted authority)";
  return error;
}

void set_text(CURL* handle, CURLoption option, const std::string& text) {
  curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  if (!text.empty()) curl().curl_easy_setopt(handle, option, &blob);
}

// Sets method, headers and body. The caller frees the returned headers after the request.
curl_slist* set_request(CURL* handle, const std::string& method,
                        const std::vector<std::pair<std::string, std::string>>& headers,
                        const std::string& body) {
  curl_slist* lines = nullptr;
  for (const auto& [name, value] : headers)
    lines = curl().curl_slist_append(lines, (name + ": " + value).c_str());
  lines = curl().curl_slist_append(lines, "Expect:");
  curl().curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines);
  if (method == "POST" || (method != "GET" && !body.empty())) {
    curl().curl_easy_setopt(handle, CURLOPT_POST, 1L);
    curl().curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.c_str());
    curl().curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.size()));
  }
  if (method != "GET" && method != "POST")
    curl().curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, method.c_str());
  return lines;
}

int status_of(CURL* handle) {
  long status = 0;
  curl().curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  return int(status);
}

Error answer_too_large() {
  return exhausted("reading the answer: larger than " + std::to_string(kAnswerBytesMax) + " bytes");
}

// An answer that is being received in pieces.
struct StreamedAnswer {
  CURL* handle;
  const Streaming& streaming;
  std::string body = {};  // of an answer that is not streamed
  bool ended = false;     // by the receiver

  bool is_streamed() const {
    const int status = status_of(handle);
    return streaming.receive && status >= 200 && status < 300;
  }
  bool pass(std::string_view piece) {
    ended = !streaming.receive(piece);
    return !ended;
  }
};

size_t begin_streamed(char* bytes, size_t, size_t count, void* into) {
  auto& answer = *static_cast<StreamedAnswer*>(into);
  const bool is_last = std::string_view(bytes, count) == "\r\n";
  return is_last && answer.is_streamed() && !answer.pass("") ? 0 : count;
}

size_t receive_streamed(char* bytes, size_t size, size_t count, void* into) {
  auto& answer = *static_cast<StreamedAnswer*>(into);
  if (!answer.is_streamed()) return append_body(bytes, size, count, &answer.body);
  return answer.pass({bytes, count}) ? count : 0;
}

// Transfers until the request has ended, and returns its result; nullopt: it was interrupted.
std::optional<CURLcode> transfer_in(CURLM* multi, CURL* handle, int interrupt_descriptor) {
  curl().curl_multi_add_handle(multi, handle);
  std::optional<CURLcode> result;
  for (;;) {
    int running = 0;
    const CURLMcode performed = curl().curl_multi_perform(multi, &running);
    if (performed != CURLM_OK) result = CURLE_OUT_OF_MEMORY;
    int queued = 0;
    if (const CURLMsg* message = curl().curl_multi_info_read(multi, &queued);
        message && message->msg == CURLMSG_DONE)
      result = message->data.result;
    if (result) break;
    curl_waitfd interrupt{interrupt_descriptor, CURL_WAIT_POLLIN, 0};
    curl().curl_multi_poll(multi, &interrupt, interrupt_descriptor < 0 ? 0 : 1,
                           kStreamPollMilliseconds, nullptr);
    if (interrupt.revents != 0) break;
  }
  curl().curl_multi_remove_handle(multi, handle);
  return result;
}

class RawConnection final : public Connection {
 public:
  explicit RawConnection(CURL* handle) : handle_(handle) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    curl().curl_easy_getinfo(handle_, CURLINFO_ACTIVESOCKET, &socket);
    descriptor_ = socket;
  }
  ~RawConnection() override { curl().curl_easy_cleanup(handle_); }

  int descriptor() const override { return descriptor_; }

  Result<std::string> read() override {
    std::string bytes;
    for (;;) {
      char buffer[kReadBytes];
      size_t got = 0;
      const CURLcode code = curl().curl_easy_recv(handle_, buffer, sizeof buffer, &got);
      // TLS may have buffered bytes that poll() on the socket does not report, so all are read.
      if (code == CURLE_AGAIN) return bytes;
      if (code != CURLE_OK)
        return unavailable(std::string("the connection: ") + curl().curl_easy_strerror(code));
      if (got == 0 && bytes.empty()) return unavailable("the server has closed the connection");
      if (got == 0) return bytes;
      bytes.append(buffer, got);
      if (bytes.size() >= kReadBytes) return bytes;
    }
  }

  Result<void> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      size_t sent = 0;
      const CURLcode code = curl().curl_easy_send(handle_, bytes.data(), bytes.size(), &sent);
      if (code == CURLE_AGAIN) {
        pollfd ready{descriptor_, POLLOUT, 0};
        if (::poll(&ready, 1, kWriteWaitMilliseconds) == 0)
          return unavailable("writing to the server: timed out");
        continue;
      }
      if (code != CURLE_OK)
        return unavailable(std::string("the connection: ") + curl().curl_easy_strerror(code));
      bytes.remove_prefix(sent);
    }
    return {};
  }

 private:
  CURL* const handle_;
  int descriptor_ = -1;
};

}  // namespace

void* new_handle() { return curl().started == CURLE_OK ? curl().curl_easy_init() : nullptr; }

Error error_of_curl(int code, const char* explanation) {
  const std::string message =
      explanation[0] != '\0' ? explanation : curl().curl_easy_strerror(CURLcode(code));
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return invalid(message);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return denied(message);
    default:
      return unavailable(message);
  }
}

void prepare(void* handle, const std::string& url, const CurlLimits& limits, char* explanation) {
  curl().curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl().curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl().curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, long(CURL_HTTP_VERSION_1_1));
  curl().curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl().curl_easy_setopt(handle, CURLOPT_PROXY, "");
  curl().curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, explanation);
  curl().curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, long(limits.connect_limit / 1ms));
  if (!limits.ca_bundle.empty())
    curl().curl_easy_setopt(handle, CURLOPT_CAINFO, limits.ca_bundle.c_str());
  // Without this the system's authorities are trusted as well.
  if (!limits.ca.empty())
    curl().curl_easy_setopt(handle, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  set_text(handle, CURLOPT_CAINFO_BLOB, limits.ca);
  set_text(handle, CURLOPT_SSLCERT_BLOB, limits.certificate);
  set_text(handle, CURLOPT_SSLKEY_BLOB, limits.key);
}

Curl::Curl(CurlLimits limits) : limits_(std::move(limits)), handle_(new_handle()) {}

Curl::~Curl() {
  curl().curl_easy_cleanup(static_cast<CURL*>(handle_));
  if (multi_) curl().curl_multi_cleanup(static_cast<CURLM*>(multi_));
}

Result<Answer> Curl::post(const std::string& url,
                          const std::vector<std::pair<std::string, std::string>>& headers,
                          const std::string& body) {
  return send("POST", url, headers, body);
}

Result<Answer> Curl::send(const std::string& method, const std::string& url,
                          const std::vector<std::pair<std::string, std::string>>& headers,
                          const std::string& body) {
  CURL* handle = static_cast<CURL*>(handle_);
  if (handle == nullptr) return exhausted("starting libcurl: out of memory");
  curl().curl_easy_reset(handle);  // connections stay
  char explanation[CURL_ERROR_SIZE] = "";
  prepare(handle, url, limits_, explanation);
  curl_slist* lines = set_request(handle, method, headers, body);
  Answer answer;
  curl().curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, long(limits_.answer_limit / 1ms));
  curl().curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, append_body);
  curl().curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer.body);
  const CURLcode code = curl().curl_easy_perform(handle);
  curl().curl_slist_free_all(lines);
  if (code == CURLE_WRITE_ERROR) return answer_too_large();
  if (code != CURLE_OK) return with_authority_hint(error_of_curl(code, explanation), limits_);
  answer.status = status_of(handle);
  return answer;
}

Result<Answer> Curl::stream(const std::string& method, const std::string& url,
                            const std::vector<std::pair<std::string, std::string>>& headers,
                            const std::string& body, const Streaming& streaming) {
  CURL* handle = static_cast<CURL*>(handle_);
  if (handle != nullptr && multi_ == nullptr) multi_ = curl().curl_multi_init();
  if (multi_ == nullptr) return exhausted("starting libcurl: out of memory");
  curl().curl_easy_reset(handle);
  char explanation[CURL_ERROR_SIZE] = "";
  prepare(handle, url, limits_, explanation);
  curl_slist* lines = set_request(handle, method, headers, body);
  StreamedAnswer answer{handle, streaming};
  curl().curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, long(streaming.answer_limit / 1ms));
  curl().curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl().curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, kProbeAfterSeconds);
  curl().curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, kProbeIntervalSeconds);
  curl().curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, begin_streamed);
  curl().curl_easy_setopt(handle, CURLOPT_HEADERDATA, &answer);
  curl().curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, receive_streamed);
  curl().curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answer);
  const auto code =
      transfer_in(static_cast<CURLM*>(multi_), handle, streaming.interrupt_descriptor);
  curl().curl_slist_free_all(lines);
  if (!code) return cancelled("the request was interrupted");
  if (answer.ended) return Answer{status_of(handle), ""};
  if (*code == CURLE_WRITE_ERROR) return answer_too_large();
  if (*code != CURLE_OK) return with_authority_hint(error_of_curl(*code, explanation), limits_);
  return Answer{status_of(handle), std::move(answer.body)};
}

Result<std::unique_ptr<Connection>> connect_raw(const std::string& url, const CurlLimits& limits) {
  CURL* handle = new_handle();
  if (handle == nullptr) return exhausted("starting libcurl: out of memory");
  char explanation[CURL_ERROR_SIZE] = "";
  prepare(handle, url, limits, explanation);
  curl().curl_easy_setopt(handle, CURLOPT_CONNECT_ONLY, 1L);
  const CURLcode code = curl().curl_easy_perform(handle);
  curl().curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
  if (code != CURLE_OK) {
    Error error = with_authority_hint(error_of_curl(code, explanation), limits);
    curl().curl_easy_cleanup(handle);
    return error;
  }
  return std::unique_ptr<Connection>(std::make_unique<RawConnection>(handle));
}

void pause_for(Duration duration) {
  (void)::poll(nullptr, 0, int(std::max<int64_t>(0, duration / 1ms)));
}

}  // namespace trainyard::client
