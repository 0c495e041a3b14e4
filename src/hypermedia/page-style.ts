/** The one style sheet of all pages for people. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dee6, #38424f); --quiet: light-dark(#5b6673, #9aa7b5);
  --panel: light-dark(#f6f8fa, #1b2129); --link: light-dark(#0b5cad, #7db8f5); --bad: light-dark(#b3261e, #ff8a80); }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1.25rem 3rem; max-width: 68rem; font: 1rem/1.5 system-ui, sans-serif;
  background: light-dark(#fff, #12161b); color: light-dark(#1c2530, #dfe6ee); }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: baseline; padding: .9rem 0;
  border-bottom: 1px solid var(--line); }
header strong { margin-right: auto; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 1.2rem 0 .8rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0; overflow-wrap: anywhere; }
h2 small, .quiet { color: var(--quiet); font-weight: normal; }
.trail { margin: 1rem 0 -.9rem; color: var(--quiet); font-size: .9rem; overflow-wrap: anywhere; }
.links { display: flex; flex-wrap: wrap; gap: .3rem .9rem; margin: .6rem 0; }
.paging { display: flex; gap: 1.25rem; align-items: baseline; margin: 1rem 0; }
article, section { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem; margin: .8rem 0; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); margin: .6rem 0 0; }
dt, dd { margin: 0; padding: .2rem .9rem .2rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
dt { color: var(--quiet); }
pre { margin: .4rem 0; padding: .6rem .8rem; overflow: auto; max-height: 30rem; background: var(--panel);
  border-radius: .35rem; font: .85rem/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, monospace; }
summary { cursor: pointer; }
form.search { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .6rem .9rem; margin-top: .6rem; }
label { display: block; font-size: .85rem; color: var(--quiet); }
input, button { font: inherit; color: inherit; padding: .35rem .55rem; border: 1px solid var(--line); border-radius: .35rem;
  background: var(--panel); max-width: 100%; }
form.search input { width: 100%; }
button { cursor: pointer; align-self: end; }
[role=alert] { border-left: 4px solid var(--bad); padding: .4rem .9rem; background: var(--panel); }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--quiet); }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } dd { border-top: 0; padding-top: 0; } }
`;
