/// The one style of all pages, for light and dark and for windows of 360 pixels and more.
///
/// Texts have a contrast of at least 4.5:1 (WCAG 2.2, 1.4.3), parts of charts at least 3:1
/// (1.4.11); the tests compute both. The text must not contain `<` or `&`, so that the
/// page is well-formed XML.
enum StyleSheet {
    static let text: StaticString = """

        :root {
          color-scheme: light dark;
          --page: #f6f8fa; --card: #ffffff; --line: #d1d9e0; --text: #1f2328; --muted: #59636e;
          --good: #1a7f37; --bad: #cf222e; --warn: #9a6700; --info: #0969da; --idle: #818b98;
          --pause: #fff3c2;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --page: #0d1117; --card: #151b23; --line: #3d444d; --text: #f0f6fc; --muted: #9198a1;
            --good: #3fb950; --bad: #f85149; --warn: #d29922; --info: #4493f8; --idle: #767e89;
            --pause: #3a2d00;
          }
        }
        * { box-sizing: border-box; }
        body {
          margin: 0; background: var(--page); color: var(--text);
          font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
        }
        header, main, footer { max-width: 1280px; margin: 0 auto; padding: 0 16px; }
        header { padding-top: 24px; }
        footer { padding-bottom: 32px; color: var(--muted); font-size: 13px; }
        h1 { font-size: 15px; font-weight: 600; color: var(--muted); margin: 0; }
        h2 { font-size: 18px; margin: 0 0 4px; }
        h3 { font-size: 15px; margin: 16px 0 4px; }
        p { margin: 4px 0; }
        .verdict { font-size: 24px; line-height: 1.3; font-weight: 600; margin: 6px 0 8px;
          padding-left: 14px; border-left: 6px solid var(--good); overflow-wrap: anywhere; }
        .verdict.bad { border-color: var(--bad); }
        .verdict.warn { border-color: var(--warn); }
        .facts { color: var(--muted); margin: 0 0 16px; overflow-wrap: anywhere; }
        .muted { color: var(--muted); }
        .tiles { display: grid; gap: 12px; margin: 0 0 16px; padding: 0; list-style: none;
          grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); }
        .tiles li { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
          padding: 10px 14px; }
        .tiles b { display: block; font-size: 22px; line-height: 1.3; white-space: nowrap;
          font-variant-numeric: tabular-nums; }
        .tiles span { color: var(--muted); font-size: 13px; display: block; }
        main { display: grid; gap: 16px; grid-template-columns: repeat(2, minmax(0, 1fr)); }
        section { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
          padding: 14px 16px 16px; grid-column: 1 / -1; min-width: 0; }
        section.half { grid-column: auto; }
        @media (max-width: 899px) { section.half { grid-column: 1 / -1; } }
        .scroll { overflow-x: auto; }
        table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
          margin-top: 8px; }
        caption { text-align: left; color: var(--muted); font-size: 13px; padding-bottom: 4px; }
        th, td { padding: 5px 12px 5px 0; text-align: left; vertical-align: top;
          border-top: 1px solid var(--line); }
        thead th { border-top: 0; color: var(--muted); font-weight: 600; font-size: 13px;
          white-space: nowrap; }
        tbody th { font-weight: 400; }
        th.n, td.n { text-align: right; white-space: nowrap; }
        tr > :last-child { padding-right: 0; }
        table.wide { min-width: 640px; }
        .sideways { display: none; color: var(--muted); font-size: 13px; position: sticky; left: 0; }
        .url { overflow-wrap: anywhere; min-width: 14em; display: block; }
        .note { color: var(--muted); font-size: 13px; overflow-wrap: anywhere; display: block; }
        code { font: 13px/1.5 ui-monospace, SFMono-Regular, Menlo, "Liberation Mono", monospace;
          overflow-wrap: anywhere; }
        .label { white-space: nowrap; }
        td code { display: block; min-width: 20em; background: var(--page); border: 1px solid var(--line); border-radius: 4px;
          padding: 1px 5px; }
        svg { display: block; width: 100%; }
        svg.bar { height: 20px; border-radius: 4px; }
        svg.time { height: 140px; }
        svg.low { height: 36px; margin-top: 4px; }
        svg.days { height: 100px; }
        .axis { display: flex; justify-content: space-between; color: var(--muted);
          font-size: 13px; border-top: 1px solid var(--line); }
        .good { fill: var(--good); } .bad { fill: var(--bad); } .warn { fill: var(--warn); }
        .info { fill: var(--info); } .idle { fill: var(--idle); } .pause { fill: var(--pause); }
        .key { display: inline-block; width: 12px; height: 12px; margin-right: 6px;
          vertical-align: -1px; }
        .legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 6px 0; padding: 0;
          list-style: none; font-size: 13px; }
        details { margin-top: 8px; }
        summary { cursor: pointer; color: var(--muted); font-size: 13px; }
        .pictures { display: grid; gap: 12px; margin: 8px 0 0; padding: 0; list-style: none;
          grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); }
        .pictures.pairs { grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); }
        .pictures li { min-width: 0; font-size: 13px; }
        .frame { display: flex; gap: 8px; }
        .shot { flex: 1 1 0; min-width: 0; height: 120px; border: 1px solid var(--line);
          border-radius: 6px; background: var(--page); display: grid; place-items: center;
          overflow: hidden; color: var(--muted); margin: 0; }
        .shot > * { grid-area: 1 / 1; }
        .shot img, .shot svg { width: 100%; height: 118px; object-fit: contain; }
        .name { display: block; overflow-wrap: anywhere; line-height: 1.35; margin-top: 4px;
          max-height: 4.05em; overflow: hidden; }
        .tag { font-size: 12px; color: var(--muted); }
        nav { display: flex; flex-wrap: wrap; gap: 6px; margin: 0 0 16px; }
        a { color: var(--info); }
        nav a, nav b { border: 1px solid var(--line); border-radius: 6px; padding: 2px 10px;
          background: var(--card); text-decoration: none; }
        a:focus-visible, summary:focus-visible, .scroll:focus-visible {
          outline: 2px solid var(--info); outline-offset: 2px; }
        @media (max-width: 705px) {
          .sideways { display: block; }
        }
        @media (max-width: 899px) {
          .cards, .cards caption, .cards tbody, .cards tr, .cards th, .cards td { display: block; }
          .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
            clip-path: inset(50%); }
          .cards tr { border: 1px solid var(--line); border-radius: 6px; padding: 6px 10px;
            margin-top: 8px; }
          .cards th, .cards td, .cards th.n { border: 0; padding: 2px 0; text-align: left;
            white-space: normal; }
          .cards th::before, .cards td::before { content: attr(data-title) ": ";
            color: var(--muted); font-size: 13px; }
          .cards .url, .cards td code { min-width: 0; }
        }
        @media (max-width: 480px) {
          .url { min-width: 8em; }
          header, main, footer { padding-left: 10px; padding-right: 10px; }
          section { padding: 12px 10px; }
          table { font-size: 14px; }
          th, td { padding-right: 8px; }
          .verdict { font-size: 20px; }
        }
        @media print { section { break-inside: avoid; } details { display: none; } }

        """
}
