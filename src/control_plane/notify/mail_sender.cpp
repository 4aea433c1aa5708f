#include "notify/mail_sender.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/text.hpp"
#include "client/curl.hpp"
#include "transfer/curl_library.hpp"

namespace trainyard::notify {
namespace {

using transfer::curl;

constexpr Duration kMailConnectLimit = 10s;
constexpr size_t kBase64LineBytes = 57;   // 76 characters of base64, the maximum of a line in mails
constexpr size_t kEncodedWordBytes = 42;  // bytes of text in one encoded word of a header
constexpr size_t kIdBytes = 16;

std::string base64_lines(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += kBase64LineBytes)
    out.append(to_base64(text.substr(at, kBase64LineBytes))).append("\r\n");
  return out;
}

// Encodes text as words of RFC 2047, split between characters.
std::string header_text(std::string_view text) {
  const bool plain =
      text.size() <= 2 * kEncodedWordBytes &&
      std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c < 0x7f; }) &&
      text.find("=?") == text.npos;
  if (plain) return std::string(text);
  std::string out;
  while (!text.empty()) {
    size_t end = std::min(text.size(), kEncodedWordBytes);
    while (end > 1 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
      --end;
    out.append(out.empty() ? "" : "\r\n ")
        .append("=?UTF-8?B?")
        .append(to_base64(text.substr(0, end)))
        .append("?=");
    text.remove_prefix(end);
  }
  return out;
}

// Removes characters that could add a header. (Addresses were also checked when they were set.)
std::string header_address(std::string_view address) {
  std::string out;
  for (const char c : address)
    if (c > ' ' && c < 0x7f && c != '<' && c != '>') out += c;
  return out;
}

struct MailUpload {
  std::string_view left;
};

size_t read_mail(char* buffer, size_t size, size_t count, void* from) {
  auto& upload = *static_cast<MailUpload*>(from);
  const size_t bytes = std::min(size * count, upload.left.size());
  std::memcpy(buffer, upload.left.data(), bytes);
  upload.left.remove_prefix(bytes);
  return bytes;
}

struct Recipients {
  curl_slist* list = nullptr;
  ~Recipients() { curl().curl_slist_free_all(list); }
};

}  // namespace

std::string mail_of(const Outgoing& outgoing, const std::string& from, Instant date,
                    const std::string& message_id) {
  // The time is "Fri, 20 Nov 2026 09:45:00 GMT", but mails need a numeric zone.
  std::string when = to_http_date(date);
  when.replace(when.size() - 3, 3, "+0000");
  return "Date: " + when + "\r\nFrom: " + header_address(from) +
         "\r\nTo: " + header_address(outgoing.endpoint) +
         "\r\nSubject: " + header_text(outgoing.subject) + "\r\nMessage-ID: " + message_id +
         "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=UTF-8\r\n"
         "Content-Transfer-Encoding: base64\r\nAuto-Submitted: auto-generated\r\n\r\n" +
         base64_lines(outgoing.body);
}

Sent MailSender::send(const Outgoing& outgoing) const {
  const std::unique_ptr<void, void (*)(void*)> owned(
      client::new_handle(), [](void* each) { curl().curl_easy_cleanup(static_cast<CURL*>(each)); });
  if (!owned) return {SendResult::retry, "starting libcurl: out of memory"};
  CURL* const handle = static_cast<CURL*>(owned.get());
  char words[CURL_ERROR_SIZE] = "";
  client::CurlLimits limits;
  limits.ca_bundle = settings_.ca_bundle;
  limits.connect_limit = kMailConnectLimit;
  client::prepare(handle, settings_.url, limits, words);
  const std::string domain = settings_.from.substr(settings_.from.find('@') + 1);
  const std::string mail = mail_of(outgoing, settings_.from, clock_.now(),
                                   "<" + random_.hex(kIdBytes) + "@" + domain + ">");
  MailUpload upload{mail};
  Recipients recipients{
      curl().curl_slist_append(nullptr, ("<" + header_address(outgoing.endpoint) + ">").c_str())};
  curl().curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl().curl_easy_setopt(handle, CURLOPT_MAIL_FROM, ("<" + settings_.from + ">").c_str());
  curl().curl_easy_setopt(handle, CURLOPT_MAIL_RCPT, recipients.list);
  curl().curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
  curl().curl_easy_setopt(handle, CURLOPT_READFUNCTION, read_mail);
  curl().curl_easy_setopt(handle, CURLOPT_READDATA, &upload);
  curl().curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, long(kMailLimit / 1ms));
  if (settings_.require_tls && settings_.url.starts_with("smtp://"))
    curl().curl_easy_setopt(handle, CURLOPT_USE_SSL, long(CURLUSESSL_ALL));
  if (!settings_.user.empty()) {
    curl().curl_easy_setopt(handle, CURLOPT_USERNAME, settings_.user.c_str());
    curl().curl_easy_setopt(handle, CURLOPT_PASSWORD, settings_.password.c_str());
  }
  const CURLcode code = curl().curl_easy_perform(handle);
  if (code == CURLE_OK) return {};
  long status = 0;
  curl().curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  // Statuses 550 to 559 are permanent errors of an address; other errors are retried.
  const bool refused = status >= 550 && status < 560 && code != CURLE_LOGIN_DENIED;
  return {refused ? SendResult::refused : SendResult::retry,
          "the mail server: " + client::error_of_curl(code, words).message};
}

}  // namespace trainyard::notify
