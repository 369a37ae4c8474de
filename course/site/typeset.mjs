// One formula a line, in and out: reads {tex, display} as JSON from stdin, answers {html} or {error} on stdout.
import { createInterface } from "node:readline";
import katex from "katex";

for await (const line of createInterface({ input: process.stdin })) {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    const html = katex.renderToString(tex, {
      displayMode: display,
      output: "htmlAndMathml", // MathML for screen readers, HTML for the eye
      throwOnError: true,
      strict: "error", // what KaTeX would only half understand is a mistake in the text
    });
    // the TeX source travels along as an annotation that no one sees: a third of the weight
    answer = { html: html.replace(/<annotation[^]*?<\/annotation>/, "") };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
