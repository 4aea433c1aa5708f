#include "client/forward.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "client/authority.hpp"
#include "client/curl.hpp"
#include "transfer/curl_library.hpp"

namespace trainyard::client {
namespace {

using transfer::curl;

constexpr size_t kIdleHandlesMax = 16;  // connections that are reused by later requests
constexpr size_t kHeaderBytesMax = 64 << 10;

bool one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// State of one call of forward().
struct Transfer {
  const ForwardedRequest& request;
  const Receiver& receiver;
  CURL* handle;
  Fields headers = {};
  size_t header_bytes = 0;
  bool started = false;
  Result<void> fault = {};  // reported by a callback; more precise than the error of curl

  Result<void> start() {
    if (started) return {};
    long status = 0;
    curl().curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    started = true;
    return receiver.start(int(status), headers);
  }
};

size_t read_body(char* into, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  auto got = transfer.request.read({into, size * count});
  if (got) return *got;
  transfer.fault = std::move(got).error();
  return CURL_READFUNC_ABORT;
}

size_t take_header(char* bytes, size_t, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view line(bytes, count);
  if (line.starts_with("HTTP/")) {  // the headers so far belong to a 1xx answer
    transfer.headers.clear();
    return count;
  }
  if ((transfer.header_bytes += count) > kHeaderBytesMax) return 0;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return count;
  std::string name = to_lower(trim(line.substr(0, colon)));
  if (is_returned_header(name))
    transfer.headers.emplace_back(std::move(name), trim(line.substr(colon + 1)));
  return count;
}

size_t forward_body(char* bytes, size_t, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  auto taken = transfer.start();
  if (taken) taken = transfer.receiver.write({bytes, count});
  if (taken) return count;
  transfer.fault = std::move(taken);
  return CURL_WRITEFUNC_ERROR;
}

void set_request(CURL* handle, const ForwardedRequest& request, Transfer& transfer) {
  if (request.method == "HEAD") {
    curl().curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (request.read) {
    curl().curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl().curl_easy_setopt(handle, CURLOPT_READFUNCTION, read_body);
    curl().curl_easy_setopt(handle, CURLOPT_READDATA, &transfer);
    if (request.body_bytes)
      curl().curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(*request.body_bytes));
  }
  curl().curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

}  // namespace

struct Forwarder::Handles {
  ~Handles() {
    for (CURL* handle : idle) curl().curl_easy_cleanup(handle);
  }
  CURL* take() {
    {
      const MutexLock lock(mutex);
      if (!idle.empty()) {
        CURL* handle = idle.back();
        idle.pop_back();
        return handle;
      }
    }
    return static_cast<CURL*>(new_handle());
  }
  void give_back(CURL* handle) {
    const MutexLock lock(mutex);
    if (idle.size() < kIdleHandlesMax)
      idle.push_back(handle);
    else
      curl().curl_easy_cleanup(handle);
  }
  Mutex mutex;
  std::vector<CURL*> idle GUARDED_BY(mutex);
};

Forwarder::Forwarder(Clock& clock) : clock_(clock), handles_(std::make_unique<Handles>()) {}

Forwarder::~Forwarder() = default;

Result<void> Forwarder::forward(const Remote& remote, const ForwardedRequest& request,
                                const Receiver& receiver) {
  const std::string authority = TRY(authority_of(remote.endpoint));
  signing::HeaderList headers{{"Host", authority}};
  headers.insert(headers.end(), request.headers.begin(), request.headers.end());
  for (auto& header : signing::sign(request.method, request.target, headers, request.payload_sha256,
                                    remote.keys, request.scope, clock_.now()))
    headers.push_back(std::move(header));

  CURL* handle = handles_->take();
  if (handle == nullptr) return exhausted("forwarding a request: out of memory for libcurl");
  curl().curl_easy_reset(handle);  // its connections stay
  char explanation[CURL_ERROR_SIZE] = "";
  std::string url = remote.endpoint;
  while (url.ends_with('/')) url.pop_back();
  url += request.target;
  Transfer transfer{request, receiver, handle};
  prepare(handle, url, {remote.ca_bundle, remote.connect_limit}, explanation);
  curl().curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);  // the signature covers it unchanged
  curl().curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl().curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, long(remote.idle_limit / 1s));
  set_request(handle, request, transfer);
  curl_slist* lines = nullptr;
  for (const auto& [name, value] : headers)
    // A semicolon makes curl send an empty value; "Name:" would omit the header.
    lines =
        curl().curl_slist_append(lines, (value.empty() ? name + ";" : name + ": " + value).c_str());
  lines = curl().curl_slist_append(lines, "Expect:");
  lines = curl().curl_slist_append(lines, "Accept:");
  curl().curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines);
  curl().curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl().curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl().curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, forward_body);
  curl().curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  const CURLcode code = curl().curl_easy_perform(handle);
  curl().curl_slist_free_all(lines);
  Result<void> done;
  if (code != CURLE_OK && !transfer.fault)
    done = std::move(transfer.fault);
  else if (code != CURLE_OK)
    done = error_of_curl(code, explanation);
  else
    done = transfer.start();
  handles_->give_back(handle);
  return done;
}

Fields forwarded_headers(const Fields& headers) {
  Fields passed;
  for (const auto& [name, value] : headers) {
    const std::string lower = to_lower(name);
    const bool of_amazon =
        lower.starts_with("x-amz-") &&
        !one_of(lower, {"x-amz-date", "x-amz-security-token", "x-amz-content-sha256",
                        "x-amz-decoded-content-length", "x-amz-trailer"});
    if (of_amazon || lower.starts_with("if-") ||
        one_of(lower, {"content-type", "content-md5", "content-encoding", "content-disposition",
                       "content-language", "cache-control", "expires", "range"}))
      passed.emplace_back(lower, value);
  }
  return passed;
}

bool is_returned_header(const std::string& header) {
  return !one_of(header, {"connection", "keep-alive", "transfer-encoding", "date", "server"});
}

}  // namespace trainyard::client
