#include "notify/http_sender.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "client/curl.hpp"
#include "transfer/curl_library.hpp"

namespace trainyard::notify {
namespace {

using transfer::curl;

constexpr size_t kEndpointBytesMax = 2048;
constexpr size_t kAnswerBytesKept = 64 << 10;  // bytes of a response that are read

std::optional<IpAddress> address_of(const curl_sockaddr& address) {
  if (address.family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.addr, sizeof v4);
    return ip_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.family != AF_INET6) return std::nullopt;
  // A longer address continues behind the declared member of libcurl's structure.
  sockaddr_in6 v6{};
  std::memcpy(&v6, reinterpret_cast<const char*>(&address) + offsetof(curl_sockaddr, addr),
              sizeof v6);
  IpAddress out;
  std::memcpy(out.bytes.data(), &v6.sin6_addr, out.bytes.size());
  return out;
}

struct Gate {
  const std::vector<IpBlock>* allowed = nullptr;
  bool closed = false;  // an address was rejected
  bool passed = false;  // an address was accepted
};

curl_socket_t open_socket(void* gate_pointer, curlsocktype, curl_sockaddr* address) {
  auto& gate = *static_cast<Gate*>(gate_pointer);
  const auto found = address_of(*address);
  if (!found || !may_connect(*found, *gate.allowed)) {
    gate.closed = true;
    return CURL_SOCKET_BAD;
  }
  gate.passed = true;
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

size_t drop_answer(char*, size_t, size_t count, void* counted) {
  auto& bytes = *static_cast<size_t*>(counted);
  bytes += count;
  return bytes > kAnswerBytesKept ? 0 : count;
}

bool is_retried(long status) { return status >= 500 || status == 429 || status == 408; }

struct Slist {
  curl_slist* list = nullptr;
  ~Slist() { curl().curl_slist_free_all(list); }
  void add(const std::string& line) { list = curl().curl_slist_append(list, line.c_str()); }
};

// Removes line breaks, since each would begin another header.
std::string header_value(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c == '\r' || c == '\n' || c == '\0') c = ' ';
  return out;
}

}  // namespace

Sent HttpSender::send(const Outgoing& outgoing) const {
  const std::unique_ptr<void, void (*)(void*)> owned(
      client::new_handle(), [](void* each) { curl().curl_easy_cleanup(static_cast<CURL*>(each)); });
  if (!owned) return {SendResult::retry, "starting libcurl: out of memory"};
  CURL* const handle = static_cast<CURL*>(owned.get());
  char words[CURL_ERROR_SIZE] = "";
  client::CurlLimits limits;
  limits.ca_bundle = settings_.ca_bundle;
  limits.connect_limit = settings_.connect_limit;
  limits.answer_limit = settings_.answer_limit;
  client::prepare(handle, outgoing.endpoint, limits, words);
  Gate gate{&settings_.allowed};
  Slist lines;
  for (const auto& [name, value] : outgoing.headers) lines.add(name + ": " + header_value(value));
  lines.add("Expect:");
  size_t answered = 0;
  curl().curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl().curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, &gate);
  curl().curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl().curl_easy_setopt(handle, CURLOPT_HTTPHEADER, lines.list);
  curl().curl_easy_setopt(handle, CURLOPT_POST, 1L);
  curl().curl_easy_setopt(handle, CURLOPT_POSTFIELDS, outgoing.body.data());
  curl().curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(outgoing.body.size()));
  curl().curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, long(settings_.answer_limit / 1ms));
  curl().curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop_answer);
  curl().curl_easy_setopt(handle, CURLOPT_WRITEDATA, &answered);
  const CURLcode code = curl().curl_easy_perform(handle);
  if (gate.closed && !gate.passed && code != CURLE_OK)
    return {SendResult::refused,
            "the address of the endpoint is not on the public internet; allow_networks of "
            "[notifications] in the configuration lists others"};
  long status = 0;
  curl().curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  // The endpoint has the message once it has returned success, even if its response is too long.
  if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && status != 0))
    return {code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ? SendResult::refused
                                                                              : SendResult::retry,
            client::error_of_curl(code, words).message};
  if (status >= 200 && status < 300) return {};
  return {is_retried(status) ? SendResult::retry : SendResult::refused,
          "the endpoint returned HTTP status " + std::to_string(status)};
}

Result<void> check_http_endpoint(Protocol protocol, const std::string& endpoint) {
  const std::string scheme = std::string(kProtocols.text(protocol)) + "://";
  const auto wrong = [&](const std::string& why) {
    return invalid("Invalid parameter: Endpoint: " + why);
  };
  if (!endpoint.starts_with(scheme))
    return wrong("must match the specified protocol, " + scheme + "...");
  if (endpoint.size() > kEndpointBytesMax)
    return wrong("longer than " + std::to_string(kEndpointBytesMax) + " bytes");
  for (const char c : endpoint)
    if (c <= ' ' || c == 0x7f || c == '#' || c == '\\')
      return wrong("a URL with blanks, control characters, '#' or '\\'");
  const std::string authority =
      endpoint.substr(scheme.size(), endpoint.find_first_of("/?", scheme.size()) - scheme.size());
  if (authority.find('@') != authority.npos) return wrong("a URL with a user");
  if (host_of(endpoint).empty()) return wrong("a URL without a host");
  return {};
}

std::string host_of(const std::string& endpoint) {
  const auto start = endpoint.find("://");
  if (start == endpoint.npos) return "";
  std::string authority =
      endpoint.substr(start + 3, endpoint.find_first_of("/?", start + 3) - start - 3);
  if (authority.starts_with('[')) return to_lower(authority.substr(0, authority.find(']') + 1));
  return to_lower(authority.substr(0, authority.find(':')));
}

}  // namespace trainyard::notify
