import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { Markdown } from './markdown.tsx'

const mark = (number: number) => createElement('cite', null, number)

/** Returns the HTML of an answer, without the classes that style it. */
function render(source: string): string {
  const html = renderToStaticMarkup(createElement(Markdown, { source, mark }))
  return html.replaceAll(/ (?:class|tabindex)="[^"]*"/g, '').replaceAll(/(?<=>)\n+|\n+(?=<)/g, '')
}

describe('Markdown of a reply', () => {
  it('shows paragraphs, emphasis, code and line breaks', () => {
    expect(render('One **two** *three*\nfour ~~five~~ `six & <b>`')).toBe(
      '<div><p dir="auto">One <strong>two</strong> <em>three</em><br/>four <del>five</del> <code dir="ltr">six &amp; &lt;b&gt;</code></p></div>',
    )
    expect(render('# Title\n\n---\n\n```js\nlet a = 1\n\nlet b\n```')).toMatch(
      /^<div><p dir="auto">Title<\/p><hr\/><section><pre dir="ltr">let a = 1\n\nlet b\n?<\/pre><\/section><\/div>$/,
    )
  })

  it('shows lists, quotes and tables', () => {
    expect(render('3. a\n4. b\n   - c')).toBe('<div><ol dir="auto" start="3"><li>a</li><li>b<ul dir="auto"><li>c</li></ul></li></ol></div>')
    expect(render('> a')).toBe('<div><blockquote dir="auto"><p dir="auto">a</p></blockquote></div>')
    expect(render('| a | b |\n|:--|--:|\n| 1 | **2** [#3] |')).toBe(
      '<div><div dir="auto"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><strong>2</strong> <cite>3</cite></td></tr></tbody></table></div></div>',
    )
    expect(render('- [x] a\n- [ ] b').replaceAll(/ +/g, ' ')).toBe('<div><ul dir="auto"><li>☑ a</li><li>☐ b</li></ul></div>')
  })

  it('shows footnotes below a line, without links', () => {
    expect(render('High[^1].\n\n[^1]: 30 m')).toMatch(
      /^<div><p dir="auto">High<sup>1<\/sup>\.<\/p><section[^>]*><hr\/><ol dir="auto"><li><p dir="auto">30 m ?<\/p><\/li><\/ol><\/section><\/div>$/,
    )
  })

  it('sets the direction of each part', () => {
    expect(render('مرحبا\n\nHello\n\n- عمان')).toBe(
      '<div><p dir="auto">مرحبا</p><p dir="auto">Hello</p><ul dir="auto"><li>عمان</li></ul></div>',
    )
  })

  it('puts citations in position, but not into code', () => {
    expect(render('The port [#1][#23] is **old [#2]**.\n[#4] `[#5]`')).toBe(
      '<div><p dir="auto">The port <cite>1</cite><cite>23</cite> is <strong>old <cite>2</cite></strong>.<br/><cite>4</cite> <code dir="ltr">[#5]</code></p></div>',
    )
    expect(render('```\n[#1]\n```')).not.toContain('<cite>')
    expect(render('[#12345678901]')).not.toContain('<cite>')
  })

  it('renders no HTML, images or links of a model', () => {
    expect(render('a <img src=x onerror="alert(1)"> [#1] <b>b</b>')).toBe(
      '<div><p dir="auto">a &lt;img src=x onerror=&quot;alert(1)&quot;&gt; <cite>1</cite> &lt;b&gt;b&lt;/b&gt;</p></div>',
    )
    expect(render('<script>alert(1)</script>\n\n<div onclick=x>\n\n[#1]</div>')).not.toMatch(/<(script|div \w+click)/)
    expect(render('<script>\nalert(1)\n</script>')).toContain('alert(1)')
    expect(render('![chart](https://a.example/x.png)')).toBe('<div><p dir="auto">chart</p></div>')
    expect(render('[here](javascript:alert(1))')).toBe('<div><p dir="auto">here (<bdi dir="ltr">javascript:alert(1)</bdi>)</p></div>')
  })

  it('shows links with their addresses, as written', () => {
    expect(render('[**the** port](https://a.example/x?a=1&b=2 "title")')).toBe(
      '<div><p dir="auto"><strong>the</strong> port (<bdi dir="ltr">https://a.example/x?a=1&amp;b=2</bdi>)</p></div>',
    )
    expect(render('see https://a.example/عمان')).toBe('<div><p dir="auto">see <bdi>https://a.example/عمان</bdi></p></div>')
    expect(render('<https://a.example/x>')).toBe('<div><p dir="auto"><bdi>https://a.example/x</bdi></p></div>')
  })
})
