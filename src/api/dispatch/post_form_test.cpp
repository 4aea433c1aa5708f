// Tests browser uploads through the handler: the stored objects, rejections before the file is
// read, and responses.
#include "dispatch/post_form.hpp"
#include "dispatch/api.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "dispatch/testing/test_server.hpp"
#include "objects/memory.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::api {
namespace {

struct FormServer : TestServer {
  FormServer() {
    open();
    EXPECT_TRUE(objects->create_bucket("data", "eu-west-1"));
  }

  std::string stored(const std::string& key) {
    const auto bytes = objects::read_all(*objects, "data", key, 1 << 20);
    return bytes ? *bytes : "";
  }
  size_t count() { return objects->list("data", {})->objects.size(); }
};

struct Form {
  NameValues fields{{"key", "up/${filename}"}};
  std::string conditions = R"({"bucket": "data"}, ["starts-with", "$key", "up/"])";
  std::string expiration = "2026-11-20T10:45:00Z";
  std::string file = "file bytes", file_name = "a.txt";
  std::string key_id = "AKIAOWNER", secret = "owner-secret", date = "20261120T094500Z", spoil = "";
  bool with_file = true;
  signing::HeaderList headers = {};

  net::Request request() const {
    const std::string day = date.substr(0, 8),
                      credential = key_id + "/" + day + "/eu-west-1/s3/aws4_request";
    std::string document =
        R"({"expiration": ")" + expiration + R"(", "conditions": [)" + conditions;
    NameValues all = fields;
    for (const auto& [name, value] : NameValues{{"x-amz-algorithm", "AWS4-HMAC-SHA256"},
                                                {"x-amz-credential", credential},
                                                {"x-amz-date", date}}) {
      all.emplace_back(name, value);
      document += R"(, {")" + name + R"(": ")" + value + R"("})";
    }
    const std::string policy = to_base64(document + "]}");
    all.emplace_back("policy", policy + spoil);
    const std::string key = signing::signing_key(secret, day, {"eu-west-1", "s3"});
    all.emplace_back("x-amz-signature", to_hex(signing::hmac_sha256(key, policy)));
    net::Request out;
    out.method = "POST";
    out.target = "/data";
    out.headers.add("Content-Type", "multipart/form-data; boundary=xyz");
    for (const auto& [name, value] : headers) out.headers.add(name, value);
    for (const auto& [name, value] : all)
      out.body +=
          "--xyz\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n";
    if (with_file)
      out.body += "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" +
                  file_name + "\"\r\n\r\n" + file + "\r\n";
    out.body += "--xyz--\r\n";
    return out;
  }
};

std::string code_of(const in_memory::Reply& reply) {
  const auto begin = reply.body.find("<Code>"), end = reply.body.find("</Code>");
  return begin == std::string::npos ? "" : reply.body.substr(begin + 6, end - begin - 6);
}

TEST(PostForm, StoresTheFileUnderItsKey) {
  FormServer world;
  for (const size_t piece : {1, 7, 100, 100'000}) {
    Form form;
    form.file_name = "C:\\dir\\a" + std::to_string(piece) + ".txt";
    form.fields.insert(form.fields.end(), {{"Content-Type", "text/plain"},
                                           {"x-amz-meta-Colour", "blue"},
                                           {"Cache-Control", "no-store"}});
    form.conditions +=
        R"(, ["starts-with", "$Content-Type", "text/"], {"x-amz-meta-colour": "blue"}, ["eq", "$cache-control", "no-store"])";
    const auto reply = in_memory::send(*world.api, form.request(), piece);
    EXPECT_EQ(reply->status, 204) << reply->body;
    const std::string key = "up/a" + std::to_string(piece) + ".txt";
    EXPECT_EQ(world.stored(key), "file bytes");
    const auto info = world.objects->head("data", key);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->content_type, "text/plain");
    EXPECT_EQ(info->metadata, (std::map<std::string, std::string>{{"colour", "blue"}}));
    EXPECT_EQ(info->headers.at("cache-control"), "no-store");
    EXPECT_EQ(reply->headers.get("ETag"), "\"" + info->etag + "\"");
  }
}

TEST(PostForm, AnswersAsTheFormRequests) {
  FormServer world;
  const auto answer = [&](const std::string& field, const std::string& value) {
    Form form;
    form.fields.emplace_back(field, value);
    form.conditions += ", [\"starts-with\", \"$" + field + "\", \"\"]";
    return *in_memory::send(*world.api, form.request());
  };
  EXPECT_EQ(answer("success_action_status", "200").status, 200);
  EXPECT_EQ(answer("success_action_status", "500").status, 204);
  auto reply = answer("success_action_status", "201");
  EXPECT_EQ(reply.status, 201);
  EXPECT_NE(reply.body.find("<Bucket>data</Bucket><Key>up/a.txt</Key><ETag>"), std::string::npos)
      << reply.body;
  reply = answer("success_action_redirect", "https://example.org/done?a=b");
  EXPECT_EQ(reply.status, 303);
  EXPECT_TRUE(reply.headers.get("Location")
                  .starts_with("https://example.org/done?a=b&bucket=data&key=up%2Fa.txt&etag=%22"));
  EXPECT_EQ(answer("success_action_redirect", "javascript:alert(1)").status, 204);
  EXPECT_EQ(answer("redirect", "https://example.org/a b").status, 204);
}

TEST(PostForm, StoresNothingOfRejectedForms) {
  FormServer world;
  const auto refused = [&](const std::function<void(Form&)>& change) {
    Form form;
    change(form);
    const auto reply = in_memory::send(*world.api, form.request());
    EXPECT_GE(reply->status, 400);
    EXPECT_EQ(world.count(), 0u) << reply->body;
    return code_of(*reply);
  };
  EXPECT_EQ(refused([](Form& form) { form.secret = "another"; }), "SignatureDoesNotMatch");
  EXPECT_EQ(refused([](Form& form) { form.spoil = "ICAg"; }), "SignatureDoesNotMatch");
  EXPECT_EQ(refused([](Form& form) { form.key_id = "AKIAOTHER"; }), "InvalidAccessKeyId");
  EXPECT_EQ(refused([](Form& form) { form.date = "20261121T094500Z"; }), "RequestTimeTooSkewed");
  EXPECT_EQ(refused([](Form& form) { form.date = "20261112T094500Z"; }), "AccessDenied");
  EXPECT_EQ(refused([](Form& form) { form.expiration = "2026-11-20T09:44:59Z"; }), "AccessDenied");
  EXPECT_EQ(refused([](Form& form) { form.fields.emplace_back("x-amz-meta-a", "b"); }),
            "AccessDenied");
  EXPECT_EQ(refused([](Form& form) { form.fields.emplace_back("x-amz-security-token", "b"); }),
            "InvalidToken");
  EXPECT_EQ(refused([](Form& form) { form.fields[0].second = "elsewhere/a"; }), "AccessDenied");
  EXPECT_EQ(refused([](Form& form) {
              form.fields[0].second = "${filename}";
              form.file_name = "up";
            }),
            "AccessDenied");
  EXPECT_EQ(refused([](Form& form) { form.fields[0].second = "up/" + std::string(1100, 'k'); }),
            "KeyTooLongError");
  EXPECT_EQ(refused([](Form& form) {
              form.fields[0].second = "up/${filename}";
              form.file_name = std::string(1100, 'k');
            }),
            "KeyTooLongError");
  EXPECT_EQ(refused([](Form& form) { form.fields.clear(); }), "InvalidArgument");
  EXPECT_EQ(refused([](Form& form) { form.with_file = false; }), "MalformedPOSTRequest");
  EXPECT_EQ(refused([](Form& form) { form.fields.emplace_back("KEY", "up/b"); }),
            "MalformedPOSTRequest");
  EXPECT_EQ(
      refused([](Form& form) { form.fields.emplace_back("x-ignore-a", std::string(30'000, 'x')); }),
      "MaxPostPreDataLengthExceededError");
  EXPECT_EQ(refused([](Form& form) {
              form.headers = {{"X-Amz-Copy-Source", "/data/secret"}};
            }),
            "AccessDenied");
  EXPECT_EQ(refused([](Form& form) {
              form.conditions = R"({"bucket": "another"}, ["starts-with", "$key", ""])";
            }),
            "AccessDenied");
  EXPECT_EQ(refused([](Form& form) { form.conditions = "5"; }), "InvalidPolicyDocument");
  EXPECT_EQ(refused([](Form& form) { form.fields.emplace_back("AWSAccessKeyId", "AKIAOWNER"); }),
            "InvalidRequest");
  EXPECT_EQ(refused([](Form& form) {
              form.fields.emplace_back("acl", "public-read");
              form.conditions += R"(, {"acl": "public-read"})";
            }),
            "AccessControlListNotSupported");
}

TEST(PostForm, AppliesTheSizesOfThePolicy) {
  FormServer world;
  const auto code = [&](size_t bytes, std::optional<uint64_t> announced = {}) {
    Form form;
    form.conditions += R"(, ["content-length-range", 5, 100000])";
    form.file = std::string(bytes, 'x');
    auto request = form.request();
    request.content_length = announced.value_or(request.body.size());
    return code_of(*in_memory::send(*world.api, std::move(request), 10'000));
  };
  EXPECT_EQ(code(4), "EntityTooSmall");
  EXPECT_EQ(code(100'001), "EntityTooLarge");
  EXPECT_EQ(code(10, uint64_t(1) << 40), "EntityTooLarge") << "by the announced length alone";
  EXPECT_EQ(world.count(), 0u);
  EXPECT_EQ(code(5), "");
  EXPECT_EQ(code(100'000), "");
  EXPECT_EQ(world.count(), 1u);
}

TEST(PostForm, StoresNothingOfATruncatedForm) {
  FormServer world;
  const net::Request whole = Form().request();
  const size_t end = whole.body.rfind("--\r\n");
  for (size_t length = 0; length < end; length += 3) {
    net::Request request = whole;
    request.body.resize(length);
    const auto reply = in_memory::send(*world.api, std::move(request), 64);
    EXPECT_GE(reply->status, 400) << length;
  }
  EXPECT_EQ(world.count(), 0u);
}

TEST(PostForm, AcceptsOnlyUnsignedPostsToABucket) {
  net::RequestHead head;
  head.method = "POST";
  head.target = "/data";
  head.headers.add("Content-Type", "multipart/form-data; boundary=b");
  EXPECT_TRUE(PostForm::of(head));
  head.target = "/data/";
  EXPECT_TRUE(PostForm::of(head));
  for (const char* target : {"/", "/data/key", "/data?delete", "/%zz"}) {
    head.target = target;
    EXPECT_FALSE(PostForm::of(head)) << target;
  }
  head.target = "/data";
  head.method = "PUT";
  EXPECT_FALSE(PostForm::of(head));
  head.method = "POST";
  head.headers.add("Authorization", "AWS4-HMAC-SHA256 x");
  EXPECT_FALSE(PostForm::of(head));
}

}  // namespace
}  // namespace trainyard::api
